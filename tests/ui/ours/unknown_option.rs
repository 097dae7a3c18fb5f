use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly", tll = 30)]
pub async fn near() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", colour = "red")]
pub async fn far() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(name = "nightly", px = 30_000, timeout = 5)]
pub async fn alias() -> Result<(), LockError> {
    Ok(())
}
