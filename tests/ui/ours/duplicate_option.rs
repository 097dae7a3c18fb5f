use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly", ttl = 30, key = "daily", ttl = "5s")]
pub async fn nightly() -> Result<(), LockError> {
    Ok(())
}
