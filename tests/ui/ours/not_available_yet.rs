use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly", permits = 4)]
pub async fn later() -> Result<(), LockError> {
    Ok(())
}
