use redlock_runtime::{LockError, distributed_lock};

pub struct Order {
    pub id: u64,
}

#[distributed_lock(key = "order:${id}")]
pub async fn shell(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key = "order:#{order.id}")]
pub async fn spring(order: Order) -> Result<u64, LockError> {
    Ok(order.id)
}

#[distributed_lock(key = "order:{{id}}")]
pub async fn mustache(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key = "order:#id")]
pub async fn spring_without_braces(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(path = "/orders/${id}")]
pub async fn path(id: u64) -> Result<u64, LockError> {
    Ok(id)
}

/// A value in braces, and an intended sign.
#[distributed_lock(key = "{{{id}}}:#7")]
pub async fn hash_tag(id: u64) -> Result<u64, LockError> {
    Ok(id)
}
