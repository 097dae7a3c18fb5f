use redlock_runtime::{LockError, distributed_lock};

pub struct Money(pub u64);
pub struct Order {
    pub total: Money,
}

#[distributed_lock(key = "order:{total}:{id}")]
pub async fn simple(total: Money, id: u64) -> Result<u64, LockError> {
    Ok(total.0 + id)
}

#[distributed_lock(key = "order:{order.total}")]
pub async fn dotted(order: Order) -> Result<u64, LockError> {
    Ok(order.total.0)
}

#[distributed_lock(key = "file:{file}")]
pub async fn foreign(file: std::path::PathBuf) -> Result<std::path::PathBuf, LockError> {
    Ok(file)
}

#[distributed_lock(key = "file:{file.display()}")]
pub async fn displayed(file: std::path::PathBuf) -> Result<std::path::PathBuf, LockError> {
    Ok(file)
}
