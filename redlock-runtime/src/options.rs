//! What a caller asks for: the key, how long the lease is, how long to wait.

use crate::after_restart::AfterRestart;
use crate::error::LockError;
use crate::key::LockKey;
use crate::lease::{self, MAX_TTL};
use crate::quorum::Quorum;
use crate::site::Site;
use std::fmt;
use std::time::Duration;

/// How long a call waits for a lock that somebody else holds.
///
/// Everything counts: waiting for the holder, talking to the nodes, connecting at the start, which may take two seconds.
/// Waiting is for holders: servers that are gone are [`LockError::NoQuorum`] after about one second, unless the wait is
/// shorter or has no end.
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
    /// One try. A held key is [`LockError::Contended`] at once; servers that do not answer within the node timeout are
    /// [`LockError::NoQuorum`]. The first call of a manager may take two seconds more, for the connections.
    None,
    /// Until the lock is obtained or this time is over; [`LockError::TimedOut`] then.
    For(Duration),
    /// Until the lock is obtained, also from servers that are gone for a while.
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
    pub(crate) hold: HoldTerms,
    /// The attribute that asks; `None` for a call written by hand.
    pub(crate) site: Option<&'static Site>,
}

impl fmt::Debug for LockRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, ttl, wait, hold, site } = self;
        let mut request = f.debug_struct("LockRequest");
        request.field("key", key).field("ttl", ttl).field("wait", wait).field("hold", hold);
        if let Some(site) = site {
            request.field("site", site);
        }
        request.finish()
    }
}

/// For how long a call has the lock, whatever its body does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldTerms {
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) min_hold: Option<Duration>,
}

impl HoldTerms {
    /// Between the call that had the lock before and the one that has it next.
    pub(crate) const UNTIL_BEGUN: Self = Self { renew: false, max_hold: None, min_hold: None };
}

impl Default for HoldTerms {
    fn default() -> Self {
        Self { renew: true, ..Self::UNTIL_BEGUN }
    }
}

impl HoldTerms {
    /// # Errors
    /// [`LockError::Configuration`] for terms that contradict each other or the `ttl`.
    pub(crate) fn check(&self, ttl: Duration) -> Result<(), LockError> {
        match (self.max_hold, self.min_hold) {
            (Some(Duration::ZERO), _) => {
                Err(LockError::configuration("a max_hold of zero lets no body run: leave it out, or give it a time"))
            }
            (Some(longest), _) if !self.renew && longest > ttl => Err(LockError::configuration(format!(
                "a max_hold of {longest:?} has no effect without renewal: the lock ends with its ttl of {ttl:?}"
            ))),
            (_, Some(least)) if least > lease::MAX_TTL => Err(LockError::configuration(format!(
                "a min_hold of {least:?} is too long: at most 30 days are allowed"
            ))),
            _ => Ok(()),
        }
    }
}

impl LockRequest {
    /// A request for `key` with the manager's defaults.
    pub fn new(key: impl Into<LockKey>) -> Self {
        Self { key: key.into(), ttl: None, wait: None, hold: HoldTerms::default(), site: None }
    }

    /// The lifetime of the lock at the nodes, which is the longest that a crashed holder blocks others.
    ///
    /// Whole milliseconds, what is smaller is cut off. At most 30 days; at least the node timeout, the clock drift and
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

/// The policy of a manager: what a request leaves open.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) default_ttl: Duration,
    pub(crate) default_wait: Wait,
    pub(crate) node_timeout: Option<Duration>,
    pub(crate) drift_factor: f64,
    pub(crate) local_budget: LocalBudget,
    /// How many nodes may forget their data without anybody noticing.
    pub(crate) tolerated_amnesia: usize,
    /// If the user has said.
    pub(crate) after_restart: Option<AfterRestart>,
}

/// How much the calls of one process may go on among themselves while others wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalBudget {
    pub(crate) passes: u32,
    pub(crate) time: Duration,
}

impl Default for LocalBudget {
    fn default() -> Self {
        Self { passes: 16, time: Duration::from_millis(20) }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            default_ttl: Duration::from_secs(30),
            default_wait: Wait::For(Duration::from_secs(10)),
            node_timeout: None,
            drift_factor: 0.01,
            local_budget: LocalBudget::default(),
            tolerated_amnesia: 0,
            after_restart: None,
        }
    }
}

impl Policy {
    pub(crate) const fn quorum(&self, nodes: usize) -> Quorum {
        Quorum::of(nodes, self.tolerated_amnesia)
    }

    pub(crate) fn after_restart(&self, nodes: usize) -> AfterRestart {
        let default =
            if nodes == 1 || self.tolerated_amnesia > 0 { AfterRestart::Trust } else { AfterRestart::Abstain };
        self.after_restart.unwrap_or(default)
    }

    /// # Errors
    /// [`LockError::Configuration`] when more nodes would have to agree than there are.
    pub(crate) fn check_quorum(&self, nodes: usize) -> Result<(), LockError> {
        let forgetful = self.tolerated_amnesia;
        if self.quorum(nodes).is_possible() {
            return Ok(());
        }
        // With that many more nodes, as many may be down besides.
        let (least, useful) = (forgetful.saturating_add(1), forgetful.saturating_mul(3).saturating_add(1));
        Err(LockError::configuration(format!(
            "tolerate_amnesia({forgetful}) needs at least {least} nodes, and {useful} when as many may be down as well; \
             there are {nodes}"
        )))
    }

    pub(crate) fn node_timeout(&self, ttl: Duration) -> Duration {
        self.node_timeout.unwrap_or_else(|| lease::node_timeout(ttl))
    }

    /// `ttl` as Redis counts it, in whole milliseconds.
    ///
    /// # Errors
    /// [`LockError::Configuration`] when no lease of that length can be proven, or when it is out of range.
    pub(crate) fn checked_ttl(&self, ttl: Duration) -> Result<Duration, LockError> {
        if ttl > MAX_TTL {
            return Err(LockError::configuration(format!("a ttl of {ttl:?} is too long: at most 30 days are allowed")));
        }
        let ttl = Duration::from_millis(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let shortest = self.node_timeout(ttl).saturating_add(lease::drift(ttl, self.drift_factor));
        if ttl <= shortest {
            return Err(LockError::configuration(format!(
                "a ttl of {ttl:?} is too short: it must exceed {shortest:?}, which is the node timeout of {:?} with \
                 the clock drift",
                self.node_timeout(ttl)
            )));
        }
        Ok(ttl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_that_proves_nothing_is_refused() {
        let policy = Policy::default();
        // 1 ms and u64::MAX ms make a peer loop or wrap around.
        for millis in [0, 1, 2, 5, 11, 12, u64::MAX] {
            let ttl = Duration::from_millis(millis);
            let error = policy.checked_ttl(ttl).expect_err(&format!("{ttl:?}"));
            assert!(matches!(error, LockError::Configuration { .. }), "{error}");
        }
        for millis in [13, 50, 30_000] {
            policy.checked_ttl(Duration::from_millis(millis)).unwrap();
        }
    }

    #[test]
    fn an_own_node_timeout_needs_a_longer_ttl() {
        let policy = Policy { node_timeout: Some(Duration::from_secs(2)), ..Policy::default() };
        let error = policy.checked_ttl(Duration::from_secs(2)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a ttl of 2s is too short: it must exceed 2.022s, which is the node timeout of 2s with the clock drift"
        );
        policy.checked_ttl(Duration::from_secs(3)).unwrap();
        let endless = Policy { node_timeout: Some(Duration::MAX), ..Policy::default() };
        endless.checked_ttl(Duration::from_secs(30)).unwrap_err();
    }

    #[test]
    fn a_ttl_is_cut_to_milliseconds() {
        let ttl = Duration::from_micros(40_999);
        assert_eq!(Policy::default().checked_ttl(ttl).unwrap(), Duration::from_millis(40));
    }
}
