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
