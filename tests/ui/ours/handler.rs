use redlock_runtime::{LockError, distributed_lock};

pub const NO: bool = false;

pub fn to_text(_: LockError) -> String {
    String::new()
}

#[distributed_lock(key = "nightly", on_error = NO)]
pub async fn value() -> bool {
    true
}

#[distributed_lock(key = "nightly", on_error = String::new())]
pub async fn call() -> bool {
    true
}

#[distributed_lock(key = "nightly", on_error = to_text)]
pub async fn other_result() -> bool {
    true
}

#[distributed_lock(key = "nightly", on_contended = to_text)]
pub async fn contended() -> Result<u64, LockError> {
    Ok(7)
}

#[async_trait::async_trait]
pub trait Jobs {
    #[distributed_lock(key = "nightly", on_error = to_text)]
    async fn in_a_trait(&self) -> bool {
        true
    }
}
