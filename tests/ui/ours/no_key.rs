use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(ttl = 30)]
pub async fn capture(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}

#[distributed_lock]
pub async fn nightly() -> Result<(), LockError> {
    Ok(())
}
