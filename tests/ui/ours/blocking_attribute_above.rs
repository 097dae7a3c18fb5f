use redlock_runtime::{LockError, distributed_lock};

#[tokio::main]
#[distributed_lock(key = "nightly")]
pub async fn above() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly")]
#[tokio::main]
pub async fn below() -> Result<(), LockError> {
    Ok(())
}
