use redlock_runtime::{LockError, LockManager, distributed_lock};

#[distributed_lock(key = "order")]
pub async fn capture(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}

/// The manager and the limit say nothing about what is locked, nor does what cannot be told apart from them.
#[distributed_lock(key = "nightly", manager = locks, ttl = std::time::Duration::from_secs(seconds))]
pub async fn nightly(locks: &LockManager, seconds: u64, values: Vec<u8>) -> Result<usize, LockError> {
    Ok(values.len() + usize::try_from(seconds).unwrap_or(0))
}

#[distributed_lock(key = "order")]
#[expect(deprecated)]
pub async fn meant(order_id: u64) -> Result<u64, LockError> {
    Ok(order_id)
}
