use redlock_runtime::{LockError, distributed_lock};
use tracing::instrument as transactional;

#[distributed_lock(key = "order:{order_id}")]
#[transactional]
pub async fn commits_later(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}

#[transactional]
#[distributed_lock(key = "order:{order_id}")]
pub async fn commits_in_time(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}
