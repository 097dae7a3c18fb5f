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

#[distributed_lock(key = "nightly", lease_time = 30, expire = 5)]
pub async fn lease() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", fair = true)]
pub async fn fair() -> Result<(), LockError> {
    Ok(())
}
