//! Whether a lock is for one call alone.

/// Whether a lock is for one call alone or shared with others.
///
/// Shared locks of one key, those of *readers*, are held together, each with a lease of its own. An exclusive lock, that of a
/// *writer*, is held by one call alone, while there is neither a reader nor another writer.
/// [`LockRequest::shared`](crate::LockRequest::shared) says who enters when.
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
    /// For one call alone. Default.
    #[default]
    Exclusive,
    /// Together with others that share it.
    Shared,
    /// Together with others that share it, but for no more than so many:
    /// [`LockRequest::permits`](crate::LockRequest::permits) says how many.
    Permit,
}

impl Mode {
    /// Whether others may have the lock at the same time.
    pub(crate) const fn is_shared(self) -> bool {
        matches!(self, Self::Shared | Self::Permit)
    }

    /// Whether no more than so many may have it.
    pub(crate) const fn is_permit(self) -> bool {
        matches!(self, Self::Permit)
    }
}
