use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly", reentrant = true, fencing(7))]
pub async fn flags() -> Result<(), LockError> {
    Ok(())
}
