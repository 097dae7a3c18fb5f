use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key, ttl =, wait)]
pub async fn missing() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock("nightly", 30, ttl: 30, = 3)]
pub async fn unnamed() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly" ttl = 30)]
pub async fn comma() -> Result<(), LockError> {
    Ok(())
}
