use redlock_runtime::{LockError, distributed_lock};

pub struct Order {
    pub id: u64,
    pub price: f64,
}

#[distributed_lock(key("order:{id}", id = order.id, other = order.id))]
pub async fn unused(order: Order) -> Result<u64, LockError> {
    Ok(order.id)
}

#[distributed_lock(key("order:{id}", id))]
pub async fn without_value(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key("order:{id}", id = 1, id = 2))]
pub async fn twice() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "order:{price}:{order.price}")]
pub async fn floats(price: f32, order: Order) -> Result<u64, LockError> {
    drop(price);
    Ok(order.id)
}

#[distributed_lock(key = "order:{id}")]
pub async fn option(id: Option<u64>) -> Result<u64, LockError> {
    Ok(id.unwrap_or_default())
}

#[distributed_lock(key = "order:{name:08}:{order.id:x}:{flag:x}")]
pub async fn formats(name: String, order: Order, flag: bool) -> Result<u64, LockError> {
    drop((name, flag));
    Ok(order.id)
}

#[distributed_lock(key = "order:{id:08}")]
pub async fn format(id: String) -> Result<String, LockError> {
    Ok(id)
}

#[distributed_lock(key = "order:{id:x}f:{id:8}:{id:.3}:{id:w$}")]
pub async fn spec(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key = "order:{price}")]
pub async fn reference(price: &&f64) -> Result<(), LockError> {
    drop(price);
    Ok(())
}

#[distributed_lock(key = "order:{price}")]
pub async fn boxed(price: Box<f64>) -> Result<(), LockError> {
    drop(price);
    Ok(())
}

#[distributed_lock(key = "order:{price}")]
pub async fn shared(price: std::sync::Arc<f32>) -> Result<(), LockError> {
    drop(price);
    Ok(())
}

#[distributed_lock(key = "order:{id}")]
pub async fn option_behind(id: &Box<Option<u64>>) -> Result<u64, LockError> {
    Ok(id.unwrap_or_default())
}
