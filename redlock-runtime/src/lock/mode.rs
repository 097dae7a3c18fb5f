//! Lock modes.

use std::fmt;

/// Mode of a lock: exclusive, shared, or one of several permits.
///
/// # Examples
/// ```
/// # use redlock_runtime::{LockError, LockManager, LockRequest, Mode};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let one = manager.acquire(LockRequest::shared("config")).await?;
/// let other = manager.acquire(LockRequest::shared("config")).await?;
/// assert_eq!([one.mode(), other.mode()], [Mode::Shared; 2]);
/// assert!(manager.try_acquire("config").await.unwrap_err().is_contended());
/// # Ok(()) }
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// One holder, the *writer*. Default.
    #[default]
    Exclusive,
    /// Any number of holders, the *readers*; see [`LockRequest::shared`](crate::LockRequest::shared).
    Shared,
    /// A limited number of holders; see [`LockRequest::permits`](crate::LockRequest::permits).
    Permit,
}

/// `exclusive`, `shared` or `permit`.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
            Self::Permit => "permit",
        })
    }
}

impl Mode {
    /// Returns `true` if several calls may hold the lock at the same time.
    pub(crate) const fn is_shared(self) -> bool {
        matches!(self, Self::Shared | Self::Permit)
    }

    /// Returns `true` for a permit.
    pub(crate) const fn is_permit(self) -> bool {
        matches!(self, Self::Permit)
    }
}
