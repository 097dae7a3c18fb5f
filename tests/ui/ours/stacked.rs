use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "order:{order_id}")]
#[redlock_runtime::distributed_lock(ttl = 5, key = "order:{order_id}")]
pub async fn twice(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}

#[distributed_lock(key = "order:{order_id}")]
#[distributed_lock(key("all orders", constant))]
pub async fn two(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}
