use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "order:{order_id}")]
pub fn capture(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}
