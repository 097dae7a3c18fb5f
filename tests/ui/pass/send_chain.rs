#![deny(warnings, missing_docs)]
//! Fifteen locked functions that call each other, in a future that must be `Send`: the compiler looks into each of them, and
//! gives up when they stand too deep inside of one another.

use redlock_runtime::{LockError, distributed_lock};

/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
pub async fn innermost(id: u64) -> Result<u64, LockError> {
    tokio::task::yield_now().await;
    Ok(id)
}

/// The type inside a lock is known here, whatever is nested in it.
#[must_use]
pub fn size() -> usize {
    size_of_val(&innermost(0))
}

macro_rules! chain {
    ($($name:ident calls $next:ident,)*) => {$(
        /// # Errors
        /// The lock.
        #[distributed_lock(key = "order:{id}")]
        pub async fn $name(id: u64) -> Result<u64, LockError> {
            let found = $next(id).await?;
            Ok(found)
        }
    )*};
}

chain! {
    a calls b, b calls c, c calls d, d calls e, e calls f, f calls g, g calls h,
    h calls i, i calls j, j calls k, k calls l, l calls m, m calls n, n calls innermost,
}

/// Spawns the whole chain.
pub fn whole() -> impl Future<Output = Result<u64, LockError>> + Send {
    a(0)
}
