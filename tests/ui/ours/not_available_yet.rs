use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly", permits = 4)]
pub async fn later() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/tenants")]
pub async fn path() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["a", "b"])]
pub async fn several() -> Result<(), LockError> {
    Ok(())
}
