use redlock_runtime::{LockError, distributed_lock};

pub struct Order {
    pub id: u64,
}

#[distributed_lock(key = "order:{order.idd}")]
pub async fn capture(order: Order) -> Result<u64, LockError> {
    Ok(order.id)
}

#[distributed_lock(key = "order:{order.1}:{order.0}")]
pub async fn tuple(order: (u64,)) -> Result<u64, LockError> {
    Ok(order.0)
}
