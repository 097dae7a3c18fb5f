use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(path = "/tenants")]
pub async fn path() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["a", "b"])]
pub async fn several() -> Result<(), LockError> {
    Ok(())
}
