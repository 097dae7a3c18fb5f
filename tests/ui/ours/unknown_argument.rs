use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "order:{order_idd}")]
pub async fn near(order_id: u64, amount: u64) -> Result<u64, LockError> {
    Ok(order_id + amount)
}

#[distributed_lock(key = "order:{customer.id}")]
pub async fn far(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}

#[distributed_lock(key = "order:{self.id}")]
pub async fn none() -> Result<(), LockError> {
    Ok(())
}

/// Each is reported at its position, beside other mistakes.
#[distributed_lock(key = "order:{ordr_id}:{amount}:{x}", ttl = 0)]
pub async fn several(order_id: u64, amount: u64) -> Result<u64, LockError> {
    Ok(order_id + amount)
}
