use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "")]
pub async fn empty() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "{}:{0}:{order_id:?}:{order_id:08}:{self}:{order_id + 1}:{_}")]
pub async fn placeholders(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}

#[distributed_lock(key = "{a}{b}:{a}%")]
pub async fn separators(a: u64, b: u64) -> Result<u64, LockError> {
    Ok(a + b)
}

#[distributed_lock(key = "order:}{order_id")]
pub async fn braces(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}
