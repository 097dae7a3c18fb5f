use redlock_runtime::{LockError, distributed_lock};

/// Every mistake is reported, and the function stays, so that its callers compile.
#[distributed_lock(key = "order:{order}:{:?}{", ttl = 0, wiat = 5, renew = no)]
pub async fn capture(order_id: u64) {
    drop(order_id);
}

pub async fn caller() -> Result<(), LockError> {
    capture(7).await;
    Ok(())
}
