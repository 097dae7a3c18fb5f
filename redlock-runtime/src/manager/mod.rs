//! The lock manager: what users hold.
//!
//! Its methods put together what stands below. What a request means is decided in `request` and `client`; what a lock is,
//! in `protocol`.

mod acquire;
mod attach;
mod break_lock;
mod build;
mod builder;
mod check;
mod environment;
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
mod tuning;

pub use self::acquire::Acquire;
#[cfg(feature = "testing")]
pub(crate) use self::build::Made;
#[cfg(any(test, fuzzing))]
pub(crate) use self::build::label_of;
pub use self::builder::LockManagerBuilder;
pub use self::held::Holding;
pub use self::inherited::Inherited;
use self::last_handle::LastHandle;
pub use self::lingering::LingerStats;
#[cfg(feature = "testing")]
pub(crate) use self::replaced::{replace, restore};
pub use self::stats::{ReleaseStats, Stats};
pub use self::tuning::Tuning;
use crate::client::local_queue::LocalQueue;
use crate::client::shared::Shared;
use crate::client::window::acquire;
use crate::error::FromLockError;
use crate::error::LockError;
#[cfg(doc)]
use crate::guard::LockGuard;
use crate::guard::hold::hold;
use crate::guard::{Acquired, Fencing};
use crate::node::report::CheckReport;
use crate::protocol::rules::Rule;
use crate::request::acquire_request::AcquireRequest;
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
/// would do harm, let the storage check a number that grows with each holder ([`LockRequest::fencing`]).
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

    /// Acquires a lock with options that are written behind the call, and waits for it if another caller holds it.
    ///
    /// [`acquire`](Self::acquire) does the same with a prepared [`LockRequest`]. It needs no allocation for its future; the future of this
    /// method is boxed.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::in_memory();
    /// let guard = locks.lock("order:7").ttl(Duration::from_secs(10)).wait(Duration::from_secs(2)).await?;
    /// guard.release().await
    /// # }
    /// ```
    #[track_caller]
    pub fn lock<F>(&self, request: impl Into<LockRequest<F>>) -> Acquire<'_, F> {
        Acquire::new(self, request.into(), Location::caller())
    }

    /// Acquires a lock, and waits for it if another caller holds it.
    ///
    /// A plain key uses the manager's default `ttl` and `wait`. A [`LockRequest`] has options. The result is a [`LockGuard`], or a
    /// [`FencedGuard`](crate::FencedGuard) for a request with [`fencing`](LockRequest::fencing).
    ///
    /// # Order
    /// Waiters are served in the order in which they began to wait. A release hands the lock to the next waiter.
    ///
    /// - Calls of one manager wait in a local queue. The first of them waits in the queues of the nodes. Within the local queue, the lock
    ///   passes from call to call without a command, within the limits of [`local_handover`](crate::tuning::Tuning::local_handover) while
    ///   other processes wait. A call with another `ttl` than its predecessor goes to the end of the queues of the nodes.
    /// - [Shared](LockRequest::shared) calls do not use the local queue. All readers that wait between two writers enter together.
    /// - Between processes, the order is by the time of the first attempt (a logical clock). A call that finds the lock free takes it, even
    ///   if others wait, unless its manager has seen waiters for this key in the last two seconds.
    /// - A waiting manager sends about one command per second and node.
    /// - If a holder crashes, the next waiter gets the lock when the `ttl` is over. If a key was deleted by another program, the next
    ///   waiter notices within about a second. Crashed waiters are skipped.
    ///
    /// # Errors
    /// - [`LockError::TimedOut`]: another caller held the lock during the whole wait. [`LockError::Contended`]: the same, without a wait.
    /// - [`LockError::NoQuorum`]: too few nodes answered. Retrying can help.
    /// - [`LockError::Refused`]: so many nodes rejected the call that retrying does not help.
    /// - [`LockError::InvalidKey`], [`LockError::Configuration`]: the request is invalid.
    /// - [`LockError::WouldDeadlock`]: the call would wait for its own caller.
    /// - [`LockError::Lost`]: a [reentrant](LockRequest::reentrant) call entered a lock that has ended.
    /// - [`LockError::Closed`]: after [`shutdown`](Self::shutdown).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// A dropped call leaves nothing behind once the nodes answer: each command that may have taken the lock or a place in a queue is
    /// followed by a release, and a lock that was granted meanwhile passes to the next waiter.
    #[track_caller]
    pub fn acquire<F: Fencing>(
        &self,
        request: impl Into<LockRequest<F>>,
    ) -> impl Future<Output = Result<F::Guard, LockError>> {
        self.acquire_inner::<F>(request.into().inner.called_at(Location::caller()))
    }

    /// Acquires a lock that is free now, whatever `wait` the request or the manager has.
    ///
    /// If a majority of the nodes answers "held", it returns at once. Nodes that do not answer are waited for, for about one second, and the
    /// first call of a manager waits for its connections for up to two seconds. If the lock may [linger](LockManagerBuilder::linger), its
    /// process is asked to release it and has one node timeout to answer.
    ///
    /// # Errors
    /// [`LockError::Contended`] if another caller holds the lock; otherwise those of [`acquire`](Self::acquire).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// As for [`acquire`](Self::acquire).
    #[track_caller]
    pub fn try_acquire<F: Fencing>(
        &self,
        request: impl Into<LockRequest<F>>,
    ) -> impl Future<Output = Result<F::Guard, LockError>> {
        self.acquire(request.into().wait(Wait::None))
    }

    fn acquire_inner<F: Fencing>(
        &self,
        request: AcquireRequest,
    ) -> impl Future<Output = Result<F::Guard, LockError>> + use<'_, F> {
        async move { acquire(&self.local, &request).await.map(Acquired).and_then(F::guard) }
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
    /// Those of [`acquire`](Self::acquire), and [`LockError::Lost`] if the body was stopped, converted to the error type of the body. After
    /// [`LockError::NoQuorum`] the body has not run; the key may stay on some nodes until they have answered the release or the key has
    /// expired. A failed release after the body is not an error; [`Stats::releases`](crate::admin::Stats::releases) counts it.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled, and if the body panics.
    ///
    /// # Cancel safety
    /// The body is dropped, then the lock is released.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// # let locks = LockManager::in_memory();
    /// let total = locks
    ///     .with_lock("cart:7", async |guard| {
    ///         assert!(guard.is_held());
    ///         Ok::<_, LockError>(42)
    ///     })
    ///     .await?;
    /// # assert_eq!(total, 42); Ok(()) }
    /// ```
    #[track_caller]
    pub fn with_lock<F, R, B>(&self, request: impl Into<LockRequest<F>>, body: B) -> impl Future<Output = R>
    where
        F: Fencing,
        B: AsyncFnOnce(&F::Guard) -> R,
        R: FromLockError,
    {
        // The body does not own the guard, and so cannot detach the lock.
        let request = AcquireRequest { joins: true, ..request.into().inner.called_at(Location::caller()) };
        async move {
            match self.acquire_inner::<F>(request).await {
                Ok(guard) => {
                    hold(F::unfenced(&guard), body(&guard)).with_guard().await.unwrap_or_else(R::from_lock_error)
                }
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
