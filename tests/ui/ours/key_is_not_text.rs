use redlock_runtime::{LockError, distributed_lock};

pub const KEY: &str = "nightly";

#[distributed_lock(key = KEY)]
pub async fn constant() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = 7)]
pub async fn number() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = format!("order:{order_id}"))]
pub async fn formatted(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}

#[distributed_lock(key = id)]
pub async fn argument(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

pub struct Order {
    pub id: u64,
}

#[distributed_lock(key = format!("order:{}:{}", tenant, order.id))]
pub async fn positions(tenant: String, order: Order) -> Result<u64, LockError> {
    drop(tenant);
    Ok(order.id)
}

#[distributed_lock(key = format!("order:{}", order.id + 1))]
pub async fn computed(order: Order) -> Result<u64, LockError> {
    Ok(order.id)
}

#[distributed_lock(key = &order.id.to_string())]
pub async fn converted(order: Order) -> Result<u64, LockError> {
    Ok(order.id)
}

#[distributed_lock(key = if true { "a" } else { "b" })]
pub async fn neither() -> Result<(), LockError> {
    Ok(())
}
