//! What is done about locks that are taken in different orders.

/// What a manager does when locks are taken in one order here and in another one there.
///
/// Two calls that take the same two locks in opposite orders, each in the body of the other, wait for each other when they come
/// at the same moment, which may be a year after the code was written. The orders are seen long before that: every lock that is
/// asked for in the body of another one is noted, and an order that contradicts those seen before is reported, with the lines of
/// all calls, whether or not anybody waits.
///
/// Locks are told apart by the template of the attribute, so that `order:{id}` is one kind whatever the id is, and whichever
/// function takes it; and those of calls written by hand, by the line of the call, of which 4096 are looked at. Two locks of
/// one kind are compared by their keys: an ascending order here and a descending one there contradict each other. Keys of a line
/// written by hand are compared only if they differ in nothing but numbers.
///
/// # What is no contradiction
/// - A call that does not wait: it does not wait for others in vain either.
/// - Two orders that are only taken in the body of the same third lock: two bodies of it never run at the same moment. One that is
///   shared, or a permit, is no such lock.
/// - What is said to be none by `order_check = off` at the attribute, or by
///   [`LockRequest::order_check`](crate::LockRequest::order_check).
///
/// # What is not seen
/// - A guard that has no body: [`acquire`](crate::LockManager::acquire) without [`scope`](crate::LockGuard::scope).
/// - Locks of different managers.
/// - Waits of [reentrant](crate::LockRequest::reentrant) calls for each other: two branches of one body that enter two of its locks
///   in opposite orders may wait for each other.
/// - Opposite orders in two branches of one body, as of a `join!`, or in two tasks to which it has handed its lock by
///   [`inherit`](crate::LockGuard::inherit): they look like two orders one after the other in the body of the same third lock.
/// - Some contradictions over more than two locks, where shorter ones are excluded by a third lock.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrderCheck {
    /// Nothing. Default in release builds.
    Off,
    /// A contradiction is a warning in the log, once. Default in builds with debug assertions.
    Warn,
    /// The call that contradicts the orders before it is told [`LockError::WouldDeadlock`](crate::LockError::WouldDeadlock), each
    /// time: for tests.
    Deny,
}

impl Default for OrderCheck {
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::Warn } else { Self::Off }
    }
}
