//! What a caller asks for: the key, how long the lease is, how long to wait.

#[cfg(doc)]
use crate::error::LockError;
use crate::lock::LockKey;
use crate::protocol::hold_options::HoldOptions;
use crate::request::site::Site;
use std::fmt;
use std::time::Duration;

/// How long a call waits for a lock that somebody else holds.
///
/// Everything counts: waiting for the holder, talking to the nodes, connecting at the start, which may take two seconds.
/// Waiting is for holders: servers that are gone are [`LockError::NoQuorum`] after about one second, unless the wait is
/// shorter or has no end; and what no server will ever grant is [`LockError::Refused`] then, whatever the wait.
///
/// Calls are served in the order in which they began to wait, as far as their processes are alive. Nobody polls for a
/// lock: whoever gives it back wakes the next one. The order, and how soon a crashed holder is noticed, are described at
/// [`LockManager::acquire`](crate::LockManager::acquire).
///
/// # Examples
/// ```
/// use redlock_runtime::{LockError, LockManager, LockRequest, Wait};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let held = manager.acquire("order:7").await?;
/// let error = manager.acquire(LockRequest::new("order:7").wait(Wait::None)).await.unwrap_err();
/// assert!(matches!(error, LockError::Contended { .. }));
/// let error = manager.acquire(LockRequest::new("order:7").wait(Duration::from_secs(2))).await.unwrap_err();
/// assert!(matches!(error, LockError::TimedOut { .. }));
/// drop(held);
/// manager.acquire(LockRequest::new("order:7").wait(Wait::Forever)).await?.release().await
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// No wait for a holder: a held key is [`LockError::Contended`] at once. Servers that do not answer get as long as with
    /// any other wait, about one second, and are [`LockError::NoQuorum`] then. The first call of a manager may take two
    /// seconds more, for the connections.
    None,
    /// Until the lock is obtained or this time is over; [`LockError::TimedOut`] then.
    For(Duration),
    /// Until the lock is obtained, also from servers that are gone for a while. It ends with [`LockError::Refused`] when so
    /// many servers refuse for about one second that those which may come back are too few.
    Forever,
}

impl From<Duration> for Wait {
    fn from(wait: Duration) -> Self {
        if wait.is_zero() { Self::None } else { Self::For(wait) }
    }
}

/// A key together with the `ttl` and the `wait` for this acquisition.
///
/// Whatever takes a request takes a bare key, too, and then uses the manager's defaults.
///
/// # Examples
/// ```
/// # use redlock_runtime::{LockError, LockManager, LockRequest};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let guard = manager.acquire(LockRequest::new("order:7").ttl(Duration::from_secs(10))).await?;
/// # guard.release().await?; manager.acquire("order:7").await?; Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a request does nothing until a manager acquires it"]
pub struct LockRequest {
    pub(crate) key: LockKey,
    pub(crate) ttl: Option<Duration>,
    pub(crate) wait: Option<Wait>,
    pub(crate) hold: HoldOptions,
    /// Whether a fencing token is wanted with the lock.
    pub(crate) is_fenced: bool,
    /// The attribute that asks; `None` for a call written by hand.
    pub(crate) site: Option<&'static Site>,
}

impl fmt::Debug for LockRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, ttl, wait, hold, is_fenced, site } = self;
        let mut request = f.debug_struct("LockRequest");
        request.field("key", key).field("ttl", ttl).field("wait", wait).field("hold", hold);
        if *is_fenced {
            request.field("is_fenced", is_fenced);
        }
        if let Some(site) = site {
            request.field("site", site);
        }
        request.finish()
    }
}

impl LockRequest {
    /// A request for `key` with the manager's defaults.
    pub fn new(key: impl Into<LockKey>) -> Self {
        Self { key: key.into(), ttl: None, wait: None, hold: HoldOptions::default(), is_fenced: false, site: None }
    }

    /// The lifetime of the lock at the nodes, which is the longest that a crashed holder blocks others.
    ///
    /// Whole milliseconds, what is smaller is cut off. At most the
    /// [`longest_ttl`](crate::LockManagerBuilder::longest_ttl) of the manager, which is 60 s by default; at least the node timeout, the clock drift and
    /// 2 ms together, because anything shorter could run out before the answer arrives.
    /// Default: the manager's [`default_ttl`](crate::LockManagerBuilder::default_ttl).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// How long to wait while another owner holds the key. A zero duration is [`Wait::None`].
    /// Default: the manager's [`default_wait`](crate::LockManagerBuilder::default_wait).
    pub fn wait(mut self, wait: impl Into<Wait>) -> Self {
        self.wait = Some(wait.into());
        self
    }

    /// Whether the lease is renewed in the background for as long as the guard lives: at a third of what is left of it,
    /// so that a body may take longer than the `ttl`. Without, the lock is lost when the `ttl` is over.
    /// Default: `true`.
    ///
    /// A renewal that fails is tried again until the lease has run out.
    pub const fn renew(mut self, renew: bool) -> Self {
        self.hold.renew = renew;
        self
    }

    /// The longest that the lock is held, however often its lease is renewed: after that it is lost, and the body is
    /// stopped. For bodies that may hang. Default: none.
    ///
    /// Counted from when the lock was obtained. Without renewal it can only be shorter than the `ttl`.
    pub const fn max_hold(mut self, longest: Duration) -> Self {
        self.hold.max_hold = Some(longest);
        self
    }

    /// The least time for which the key stays taken, also when the guard is dropped earlier: at most once per that time.
    /// Default: none.
    ///
    /// Counted from when the lock was obtained, at most 30 days. Nobody can give the lock back before it is over, this
    /// process neither.
    pub const fn min_hold(mut self, least: Duration) -> Self {
        self.hold.min_hold = Some(least);
        self
    }
}

impl<K: Into<LockKey>> From<K> for LockRequest {
    fn from(key: K) -> Self {
        Self::new(key)
    }
}
