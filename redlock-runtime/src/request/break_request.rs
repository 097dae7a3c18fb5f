//! A request to break a lock.

use crate::lock::LockKey;
use crate::protocol::timing::STOPPING;
use crate::text::excerpt;
use std::time::Duration;

/// Which lock to break, and how, for [`LockManager::break_lock_with`](crate::LockManager::break_lock_with).
///
/// # Examples
/// ```
/// # use redlock_runtime::admin::BreakRequest;
/// # use redlock_runtime::{LockError, LockManager};
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let guard = manager.acquire("order:7").await?;
/// let request = BreakRequest::new("order:7", guard.token().as_str()).reason("ticket 4711: the worker hangs");
/// let report = manager.break_lock_with(request).await;
/// assert!(report.is_broken());
/// assert_eq!(report.reason.as_deref(), Some("ticket 4711: the worker hangs"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until `break_lock_with` is called with it"]
pub struct BreakRequest {
    pub(crate) key: LockKey,
    /// The token of the holder, or the value of another program.
    pub(crate) token: Box<str>,
    pub(crate) within: Duration,
    pub(crate) is_forced: bool,
    pub(crate) reason: Option<Box<str>>,
}

impl BreakRequest {
    /// A request to break the lock of `key` that is held under `token`, which [`inspect`](crate::LockManager::inspect) returns.
    pub fn new(key: impl Into<LockKey>, token: &str) -> Self {
        Self { key: key.into(), token: token.into(), within: STOPPING, is_forced: false, reason: None }
    }

    /// How long to wait for the holder to stop. Default: 5 s. At most the rest of the lease.
    pub const fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// Serves the next waiter at once and does not notify the holder, as
    /// [`break_lock_by_force`](crate::LockManager::break_lock_by_force) does.
    pub const fn by_force(mut self) -> Self {
        self.is_forced = true;
        self
    }

    /// Why the lock is broken, for the event `broken` and the report. Stays in this process: neither the holder nor a server
    /// receives it. Control characters are escaped, and 300 characters are kept.
    pub fn reason(mut self, reason: &str) -> Self {
        self.reason = Some(excerpt(reason).into());
        self
    }
}
