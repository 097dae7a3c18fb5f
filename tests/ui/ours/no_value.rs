use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "nightly", manager = +, ttl = *)]
pub async fn expressions() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", crate = "shop::locks", on_error = ?)]
pub async fn quoted_crate() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "nightly", crate = 7)]
pub async fn no_crate() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key("a", "b"))]
pub async fn two_keys() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key())]
pub async fn no_key() -> Result<(), LockError> {
    Ok(())
}

pub struct Order {
    pub id: u64,
}

#[distributed_lock(key("order:{id}", order.id))]
pub async fn no_name(order: Order) -> Result<u64, LockError> {
    Ok(order.id)
}

#[distributed_lock(key("order:{part}", order.id + 1))]
pub async fn no_name_to_guess(order: Order) -> Result<u64, LockError> {
    Ok(order.id)
}
