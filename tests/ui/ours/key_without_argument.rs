use redlock_runtime::{LockError, LockManager, distributed_lock};

#[distributed_lock(key = "order")]
pub async fn capture(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}

#[distributed_lock(key = "import")]
pub async fn import(values: Vec<u8>) -> Result<usize, LockError> {
    Ok(values.len())
}

#[distributed_lock(key = "note")]
pub async fn remember(note: &str, _times: u8) -> Result<usize, LockError> {
    Ok(note.len())
}

/// The manager and the limit say nothing about what is locked.
#[distributed_lock(key = "nightly", manager = locks, ttl = std::time::Duration::from_secs(seconds))]
pub async fn nightly(locks: &LockManager, seconds: u64, _unused: u8) -> Result<u64, LockError> {
    Ok(seconds)
}

/// What leads to something else is not what is locked.
#[distributed_lock(key = "handles")]
pub async fn handles(pool: &Service, shared: std::sync::Arc<Service>) -> Result<bool, LockError> {
    Ok(std::ptr::eq(pool, &*shared))
}

#[distributed_lock(key = "nothing")]
pub async fn nothing() -> Result<(), LockError> {
    Ok(())
}

pub struct Service;

impl Service {
    #[distributed_lock(key = "service")]
    pub async fn sweep(&self) -> Result<(), LockError> {
        Ok(())
    }
}

#[distributed_lock(key = "order")]
#[expect(deprecated)]
pub async fn meant(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}
