//! Maximum time that a call waits for a lock.

#[cfg(doc)]
use crate::error::LockError;
use std::fmt;
use std::time::Duration;

/// Maximum time that a call waits while another caller holds the lock.
///
/// The time includes the communication with the nodes and, for the first call, the connections (up to two seconds). It limits waiting for
/// a *holder*. If too few servers can be reached, the call fails with [`LockError::NoQuorum`] after about one second, unless the wait is
/// shorter or [`Forever`](Self::Forever). If the servers reject the call for good, it fails with [`LockError::Refused`] at once.
///
/// Waiters are served in the order in which they began to wait; [`LockManager::acquire`](crate::LockManager::acquire) describes the
/// exceptions.
///
/// # Examples
/// ```
/// use redlock_runtime::{LockError, LockManager, LockRequest, Wait};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), LockError> {
/// let locks = LockManager::in_memory();
/// let held = locks.acquire("order:7").await?;
/// let error = locks.acquire(LockRequest::new("order:7").wait(Wait::None)).await.unwrap_err();
/// assert!(matches!(error, LockError::Contended { .. }));
/// let error = locks.acquire(LockRequest::new("order:7").wait(Duration::from_secs(2))).await.unwrap_err();
/// assert!(matches!(error, LockError::TimedOut { .. }));
/// drop(held);
/// locks.acquire(LockRequest::new("order:7").wait(Wait::Forever)).await?.release().await
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wait {
    /// Does not wait for a holder: if the key is held, the call fails with [`LockError::Contended`] at once. Servers that do not answer
    /// are still waited for, for about one second; then the call fails with [`LockError::NoQuorum`].
    None,
    /// Waits for at most this time, then fails with [`LockError::TimedOut`].
    For(Duration),
    /// Waits until the lock is acquired, even while servers cannot be reached. The call fails with [`LockError::Refused`] if the servers
    /// that reject it leave too few others.
    Forever,
}

impl From<Duration> for Wait {
    /// A zero duration is [`Wait::None`].
    fn from(wait: Duration) -> Self {
        if wait.is_zero() { Self::None } else { Self::For(wait) }
    }
}

/// `none`, `forever`, or the duration as in `1.5s`.
impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::For(wait) => write!(f, "{wait:?}"),
            Self::Forever => f.write_str("forever"),
        }
    }
}
