use redlock_runtime::{LockError, distributed_lock};
use std::pin::Pin;

macro_rules! ensure {
    ($condition:expr) => {
        if !$condition {
            return Box::pin(async { Ok(0) });
        }
    };
}

/// The macro hides a future that would bypass the lock.
#[distributed_lock(key = "order:{id}", guard = lock)]
pub fn hidden(id: u64) -> Pin<Box<dyn Future<Output = Result<u64, LockError>> + Send>> {
    ensure!(id > 0);
    Box::pin(async move { Ok(u64::from(lock.is_held())) })
}
