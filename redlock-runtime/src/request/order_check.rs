//! Check for locks that are acquired in contradicting orders.

use std::fmt;

/// Reaction of a manager to locks that are acquired in contradicting orders.
///
/// Two calls that acquire two locks in opposite orders, the second lock inside the body of the first, deadlock if they run at the
/// same time. The manager records every lock that is acquired inside the body of another one. It reports an order that contradicts
/// an earlier one, with the lines of all calls, even if no call has to wait.
///
/// Locks are identified by the template of the attribute, so `order:{id}` is one lock whatever the id and the function. Calls without the
/// attribute are identified by their line (the first 4096 lines). Two locks with one template are compared by their keys: an ascending
/// order in one place and a descending one in another contradict each other. Keys of one line without a template are compared only if
/// they differ in nothing but numbers.
///
/// # Not reported
/// - Calls that do not wait, since they cannot deadlock.
/// - Two orders that occur only inside the body of the same third, exclusive lock: two bodies of it never run at the same time.
/// - Locks with `order_check = off` in the attribute, or with
///   [`without_order_check`](crate::LockRequest::without_order_check).
///
/// # Not detected
/// - Guards without a body: [`acquire`](crate::LockManager::acquire) without [`scope`](crate::LockGuard::scope).
/// - Locks of different managers.
/// - [Reentrant](crate::LockRequest::reentrant) calls of two branches of one body that enter two of its locks in opposite orders.
/// - Opposite orders in two branches of a `join!`, or in two tasks that [inherit](crate::LockGuard::inherit) the same lock. They
///   look like two orders inside the body of a third lock.
/// - Some contradictions of more than two locks, if shorter ones are excluded by a third lock.
///
/// # Examples
/// ```
/// # use redlock_runtime::{LockError, LockGuard, LockManager, OrderCheck};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::builder().order_check(OrderCheck::Deny).in_memory()?;
/// let order = async |_: &LockGuard| manager.acquire("order:7").await.map(drop);
/// manager.with_lock("stock:9", order).await
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OrderCheck {
    /// No check. Default in release builds.
    Off,
    /// Logs a warning, once for each contradiction. Default with debug assertions.
    Warn,
    /// Fails the call with [`LockError::WouldDeadlock`](crate::LockError::WouldDeadlock), each time. For tests.
    Deny,
}

/// `off`, `warn` or `deny`.
impl fmt::Display for OrderCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Deny => "deny",
        })
    }
}

impl Default for OrderCheck {
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::Warn } else { Self::Off }
    }
}
