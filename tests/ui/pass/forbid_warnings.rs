#![forbid(warnings, missing_docs)]
//! Under `forbid(warnings)` no generated attribute may lower a lint.

use redlock_runtime::{LockError, distributed_lock};

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}:{name:08}", ttl = 30, guard = lock)]
pub async fn simple(id: &str, name: u64, (left, _): (u64, u64)) -> Result<u64, LockError> {
    Ok(name + left + u64::from(lock.is_held()))
}

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id.len()}")]
pub async fn dotted(id: &str) -> Result<usize, LockError> {
    Ok(id.len())
}
