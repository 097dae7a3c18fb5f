use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "order:{id}")]
pub async fn unnamed(id: u64) -> Result<u64, LockError> {
    lock.ensure_held()?;
    Ok(id)
}

#[distributed_lock(key = "order:{id}")]
pub fn in_a_block(id: u64) -> impl Future<Output = Result<bool, LockError>> {
    async move { Ok(guard.is_held() && id > 0) }
}

pub struct Held;

impl Held {
    pub fn is_held(&self) -> bool {
        true
    }
}

/// The body defines the name itself.
#[distributed_lock(key = "order:{id}")]
pub async fn bound_by_the_body(id: u64) -> Result<bool, LockError> {
    let lock = Held;
    Ok(lock.is_held() && id > 0)
}

/// The name is defined before the block.
#[distributed_lock(key = "order:{id}")]
pub fn bound_before_the_block(id: u64) -> impl Future<Output = Result<bool, LockError>> {
    let guard = Held;
    async move { Ok(guard.is_held() && id > 0) }
}

#[distributed_lock(key = "order:{id}")]
pub async fn argument(id: u64, lock: Held) -> Result<bool, LockError> {
    Ok(lock.is_held() && id > 0)
}

#[distributed_lock(key = "order:{id}", guard = lock)]
pub async fn not_fenced(id: u64) -> Result<bool, LockError> {
    Ok(lock.fencing_token().as_i64() > 0 && id > 0)
}
