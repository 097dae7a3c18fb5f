//! The lock manager: what users hold.
//!
//! Its methods put together what stands below. What a request means is decided in `request` and `client`; what a lock is,
//! in `protocol`.

mod attach;
mod break_lock;
mod build;
mod builder;
mod check;
mod environment;
mod fenced;
mod held;
mod inherited;
mod inspect;
mod installed;
mod label;
mod last_handle;
mod lingering;
#[cfg(test)]
mod moved_name_tests;
#[cfg(feature = "testing")]
mod replaced;
mod stats;
mod trial;

#[cfg(feature = "testing")]
pub(crate) use self::build::Made;
#[cfg(any(test, fuzzing))]
pub(crate) use self::build::label_of;
pub use self::builder::LockManagerBuilder;
pub use self::held::LocalLock;
pub use self::inherited::Inherited;
use self::last_handle::LastHandle;
pub use self::lingering::LingerStats;
#[cfg(feature = "testing")]
pub(crate) use self::replaced::{replace, restore};
pub use self::stats::{ReleaseStats, Stats};
use crate::client::local_queue::LocalQueue;
use crate::client::shared::Shared;
use crate::client::window::acquire;
use crate::error::FromLockError;
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::guard::hold::hold;
use crate::node::report::CheckReport;
use crate::protocol::rules::Rule;
use crate::request::{LockRequest, Wait};
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

/// Takes locks on one Redis server, or on a majority of several independent ones.
///
/// A clone is a handle to the same manager. One manager per process is the rule: it owns one connection per node, which
/// all locks share.
///
/// # Blocked threads
/// A task that blocks its thread, with a long computation or `std::thread::sleep`, can lose its own lock and no other. All
/// managers of a process share one thread, called `redlock`, which renews what is held, sees releases through and makes
/// connections. The connections themselves are driven by the runtime on which the manager was built, where an answer wakes
/// the task that waits for it without a detour; as long as that is well, the thread costs nothing that can be measured. When
/// the runtime drives nothing for 20 to 50 ms although something is under way, or when it has ended, the thread drives the
/// connections, too. An acquisition and its release by a lone task then take about 1.4 times as long, those of many tasks at
/// once 1.1 times at most. After a second at the earliest, a runtime that is well has them back.
///
/// # When not to use it
/// A lease-based lock avoids doing the same work twice. It cannot stop a process that is suspended while it writes. If a late write
/// would do harm, let the storage check a number that grows with each holder ([`acquire_fenced`](Self::acquire_fenced)).
///
/// # Examples
/// ```
/// # use redlock_runtime::{LockError, LockManager};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let guard = manager.acquire("order:7").await?;
/// assert!(manager.try_acquire("order:7").await.is_err_and(|error| error.is_contended()));
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct LockManager {
    pub(crate) local: Arc<LocalQueue>,
    /// Shared by all handles, and by nobody else.
    _last: Arc<LastHandle>,
}

impl LockManager {
    pub(crate) fn new(local: Arc<LocalQueue>) -> Self {
        let last = Arc::new(LastHandle::of(&local));
        Self { local, _last: last }
    }

    pub(crate) fn shared(&self) -> &Shared {
        self.local.shared()
    }

    /// Takes the lock, waiting for it if need be.
    ///
    /// A bare key uses the manager's `ttl` and `wait`; a [`LockRequest`] says its own.
    ///
    /// Calls that wait are served first come, first served, and woken by whoever gives the lock back:
    ///
    /// - Calls of one manager wait in line in memory, and the first of them represents the manager in the queues of the
    ///   nodes. Within the line, the lock goes from call to call without a command; see
    ///   [`local_handover`](LockManagerBuilder::local_handover) for how long, while others wait as well. Calls with
    ///   another `ttl` than the one before are an exception: they go to the end of the queues.
    /// - Calls that [share](LockRequest::shared) the lock stand in no line: each asks the nodes, and those that wait between two
    ///   others, which want the lock alone, get it together.
    /// - The order among managers is that of their first try, by clocks that never stay behind one another. A call
    ///   that finds the lock free takes it, whoever waits elsewhere, unless its manager has seen others wait for the
    ///   lock in the last two seconds.
    /// - A lock that is held costs a waiting manager about one command per second and node, and a handover four commands
    ///   per node in all, the first try included.
    /// - A holder that has crashed is succeeded when its `ttl` is over, and a lock that another program has deleted is
    ///   found within about a second. Whoever waits and dies is passed over.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] when another owner held the lock during the whole wait, [`LockError::Contended`] when
    /// it was held and there is no wait, [`LockError::NoQuorum`] when too few nodes answered, [`LockError::Refused`] when
    /// so many refused for good that it is no use to try again,
    /// [`LockError::InvalidKey`] for a key that cannot be locked, [`LockError::Configuration`] for an unusable `ttl`,
    /// [`LockError::Closed`] after
    /// [`shutdown`](Self::shutdown). [`LockError::WouldDeadlock`] when the call would wait for its own caller; and
    /// [`LockError::Lost`] when it is [reentrant](LockRequest::reentrant) and was handed a lock that has ended.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Dropped at any point, it leaves nothing behind once the nodes answer: a release follows every command that may
    /// have taken the lock or a place in a queue, and what was granted meanwhile goes to the next.
    #[track_caller]
    pub fn acquire(&self, request: impl Into<LockRequest>) -> impl Future<Output = Result<LockGuard, LockError>> {
        let request = request.into().asked_at(Location::caller());
        async move { acquire(&self.local, &request).await.map(LockGuard::new) }
    }

    /// Takes the lock if it is free now, whatever `wait` the request or the manager has.
    ///
    /// A majority that says "held" ends it at once. Nodes that do not answer, or whose connection has just broken, are waited
    /// for as in any other call, for about one second. The first calls of a manager wait for its connections before that,
    /// for two seconds at most. Where the lock may [linger](LockManagerBuilder::linger), whoever has it is asked whether a body
    /// runs, and has a node timeout to give the lock back or to say so.
    ///
    /// # Errors
    /// [`LockError::Contended`] when another owner holds the lock; otherwise as for [`acquire`](Self::acquire).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// As for [`acquire`](Self::acquire).
    #[track_caller]
    pub fn try_acquire(&self, request: impl Into<LockRequest>) -> impl Future<Output = Result<LockGuard, LockError>> {
        self.acquire(request.into().wait(Wait::None))
    }

    /// Runs `body` while it holds the lock: the closure form of the attribute.
    ///
    /// If the lease ends first, the body is dropped at its next `.await`. Until then it runs without the lock. Tasks that it has spawned
    /// are not stopped, unless they [inherit](LockGuard::inherit) the lock. The lock is released however the body exits: return, `?`,
    /// panic, cancellation. The call does not wait for the answer to the release.
    ///
    /// Write an async closure: `async |guard| { .. }`. A closure that returns an async block does not compile.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire), and [`LockError::Lost`] when the body was stopped; all turned into the
    /// body's own error type. After [`LockError::NoQuorum`] the body has not run, and nodes that agreed may hold the key
    /// for a while: its release goes on in the background until they have answered or the key has expired. A release
    /// that fails after the body is no error here; [`Stats::releases`] counts it.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled, and when the body panics.
    ///
    /// # Cancel safety
    /// The body is dropped, then the lock is given back.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// # let manager = LockManager::in_memory();
    /// let total = manager
    ///     .with_lock("cart:7", async |guard| {
    ///         assert!(guard.is_held());
    ///         Ok::<_, LockError>(42)
    ///     })
    ///     .await?;
    /// # assert_eq!(total, 42); Ok(()) }
    /// ```
    #[track_caller]
    pub fn with_lock<R, F>(&self, request: impl Into<LockRequest>, body: F) -> impl Future<Output = R>
    where
        F: AsyncFnOnce(&LockGuard) -> R,
        R: FromLockError,
    {
        // The body does not get the guard itself, and so cannot leave the lock to another worker.
        let request = LockRequest { joins: true, ..request.into().asked_at(Location::caller()) };
        async move {
            match self.acquire(request).await {
                Ok(guard) => hold(&guard, body(&guard)).with_guard().await.unwrap_or_else(R::from_lock_error),
                Err(error) => R::from_lock_error(error),
            }
        }
    }

    /// Waits until locks work at a majority of the nodes, for two seconds at most: long enough for a server that starts at
    /// the same time. A node that may have forgotten locks does not count for a while; see
    /// [`AfterRestart`](crate::AfterRestart).
    ///
    /// Calls work without it. It is for a service that wants to know at the start whether it can lock. Like
    /// [`check`](Self::check), it asks the nodes what they are like and tries a lock at each; what is merely a risk is no
    /// error here, and can be read there. Both open the channels for wake-ups.
    ///
    /// # Errors
    /// [`LockError::NoQuorum`] with one cause for each node that does not count. When waiting does not help, because of
    /// wrong settings or a missing permission, it is [`LockError::Refused`] and comes at once, and its causes say what to do.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Nothing is left behind once the nodes answer.
    pub async fn ready(&self) -> Result<(), LockError> {
        check::ready(self.shared()).await
    }

    /// Asks every node what it is like, as far as locks depend on it, and tries a lock there: one is taken, extended,
    /// waited for, handed over with a wake-up, adopted and given back, and then a fenced one. For the log of a service
    /// that starts.
    ///
    /// The report tells
    ///
    /// - what keeps a node from counting: it cannot be reached, is a replica, a Sentinel or a member of a cluster, has
    ///   forgotten locks, is further away than the node timeout, or refuses a command that locks need, to this user or to
    ///   everybody. [`ready`](Self::ready) fails when too few are left;
    /// - what can break locks later: eviction, replicas that may take over, a lone server that keeps nothing over a
    ///   restart, a wrong clock, one node too many, and permissions without which waiting is slow or fencing fails.
    ///
    /// The lock has the name `redlock:check:` and a fresh token, below the [namespace](LockManagerBuilder::namespace).
    /// A user who may not use it can have all other permissions: the report says then that no lock was tried, and which
    /// pattern to grant.
    ///
    /// It takes five seconds at most, and far less when all nodes answer. Facts that the user may not query are unknown, and not an
    /// error. It opens the channels for wake-ups, to see whether that is permitted.
    ///
    /// It does not compare the nodes and settings of different processes, and does not notice that a node with `appendonly yes` and
    /// `appendfsync always` has come back without its data.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Nothing is left behind once the nodes answer: what was taken is released.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let report = LockManager::in_memory().check().await;
    /// println!("{report}");
    /// for warning in report.warnings() {
    ///     eprintln!("{warning}");
    /// }
    /// # assert!(report.warnings().is_empty()); Ok(()) }
    /// ```
    pub async fn check(&self) -> CheckReport {
        check::check(self.shared()).await
    }

    /// Ends new acquisitions with [`LockError::Closed`], gives back what is [idle](LockManagerBuilder::linger), then waits
    /// until every release that was sent is answered.
    ///
    /// Call it before the process ends, so that the last releases are not lost with it. Guards that are still held stay
    /// valid and give their locks back as usual, and [reentrant](crate::LockRequest::reentrant) calls in their bodies enter them
    /// still.
    ///
    /// Returns `false` when a node left releases unanswered until their keys had expired by themselves, which bounds
    /// the wait by the longest `ttl` in use. That may be long: wrap it in `tokio::time::timeout` where the process must
    /// end sooner. The future of a [`LockGuard::release`] counts as a release that is not answered until it is finished
    /// or dropped.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// The manager stays closed; the releases go on in the background.
    pub async fn shutdown(&self) -> bool {
        self.local.close();
        let mut all = true;
        for node in self.shared().nodes.iter().filter(|_| self.shared().rules.apply(Rule::ShutdownWaitsForReleases)) {
            for ledger in node.ledgers() {
                all &= ledger.drained().await;
            }
        }
        all
    }
}

impl fmt::Debug for LockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.shared();
        let nodes: Vec<_> = shared.nodes.iter().map(|node| (node.label(), node.status())).collect();
        f.debug_struct("LockManager")
            .field("namespace", &shared.namespace)
            .field("nodes", &nodes)
            .field("releases", &self.releases())
            .finish_non_exhaustive()
    }
}
