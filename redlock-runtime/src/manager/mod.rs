//! The lock manager, its builder and its methods.
//!
//! The methods connect the layers below: `request` and `client` interpret a request, and `protocol` decides about the lock.

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
mod locks_page;
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
pub use self::held::LocalLock;
pub use self::inherited::Inherited;
use self::last_handle::LastHandle;
pub use self::lingering::LingerStats;
pub use self::locks_page::LocksPage;
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

/// Acquires locks on one Redis server, or on a majority of several independent ones.
///
/// Use one manager per process: it owns one connection per node, which all locks share. A clone is a handle to the same manager.
///
/// # When not to use it
/// A lease-based lock avoids doing the same work twice. It cannot stop a process that is suspended while it writes. If a late write would
/// do harm, let the storage check a number that grows with each holder ([`LockRequest::fencing`]).
///
/// # Examples
/// ```
/// # use redlock_runtime::{LockError, LockManager};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let locks = LockManager::in_memory();
/// let guard = locks.acquire("order:7").await?;
/// assert!(locks.try_acquire("order:7").await.is_err_and(|error| error.is_contended()));
/// guard.release().await?;
/// # Ok(()) }
/// ```
///
/// # Blocked threads
/// A task that blocks its thread, with a long computation or `std::thread::sleep`, does not stop the renewal of its lock or of
/// other locks. But it cannot be stopped before its next `.await`, even if its lock is lost.
///
/// One thread named `redlock`, shared by all managers, renews leases, retries releases and opens connections. The connections are
/// driven by the runtime on which the manager was built. If that runtime has ended, or does not poll for 20 to 50 ms although
/// commands are pending, the thread drives the connections, too. An acquisition and its release then take about 1.4 times as long
/// for a single task, and at most 1.1 times as long for many tasks. The runtime takes over again when it polls, after one second at
/// the earliest.
#[derive(Clone)]
pub struct LockManager {
    pub(crate) local: Arc<LocalQueue>,
    /// Shared by all handles, and only by them.
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

    /// Acquires a lock, and waits for it if another caller holds it.
    ///
    /// A plain key uses the manager's default `ttl` and `wait`. A [`LockRequest`] has options. The result is a [`LockGuard`], or a
    /// [`FencedGuard`](crate::FencedGuard) for a request with [`fencing`](LockRequest::fencing).
    ///
    /// # Order
    /// Waiters are served in the order in which they began to wait, with the exceptions below. A release hands the lock to the next waiter.
    ///
    /// - Calls of one manager wait in a local queue. The first of them waits in the queues of the nodes. Within the local queue, the lock
    ///   passes from call to call without a command, within the limits of [`local_handover`](crate::tuning::Tuning::local_handover) while
    ///   other processes wait. A call whose `ttl` differs from that of the previous holder cannot take over the lock locally. It waits at
    ///   the end of the queues of the nodes.
    /// - [Shared](LockRequest::shared) calls do not use the local queue. All readers that wait between two writers enter together.
    /// - Between processes, the order is by the time of the first attempt (a logical clock). A call that finds the lock free takes
    ///   it, even if others wait. It waits only if its manager has seen waiters for this key in the last two seconds.
    /// - A waiting manager sends about one command per second and node.
    /// - If a holder crashes, the next waiter gets the lock when the `ttl` is over. If a key was deleted by another program, the next
    ///   waiter notices within about a second. Crashed waiters are skipped.
    ///
    /// # Errors
    /// - [`LockError::TimedOut`]: another caller held the lock during the whole wait. [`LockError::Contended`]: the same, without a wait.
    /// - [`LockError::NoQuorum`]: too few nodes answered. Retrying can help.
    /// - [`LockError::Refused`]: too many nodes rejected the call. Retrying does not help.
    /// - [`LockError::InvalidKey`], [`LockError::Configuration`]: the request is invalid.
    /// - [`LockError::WindowTaken`]: another call has taken the window of [`once_per`](LockRequest::once_per).
    /// - [`LockError::TooManyWaiting`]: more calls than [`max_waiting`](LockManagerBuilder::max_waiting) allows wait for the key.
    /// - [`LockError::WouldDeadlock`]: the call would wait for its own caller. With [`OrderCheck::Deny`](crate::OrderCheck::Deny), also
    ///   a call that acquires locks in a contradicting order.
    /// - [`LockError::Lost`]: a [reentrant](LockRequest::reentrant) call entered a lock that has ended.
    /// - [`LockError::Closed`]: after [`shutdown`](Self::shutdown).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// A dropped call leaves nothing behind once the nodes answer. Each command that may have taken the lock or a place in a queue
    /// is followed by a release. A lock that was granted meanwhile passes to the next waiter.
    #[track_caller]
    pub fn acquire<F: Fencing>(
        &self,
        request: impl Into<LockRequest<F>>,
    ) -> impl Future<Output = Result<F::Guard, LockError>> {
        self.acquire_inner::<F>(request.into().inner.called_at(Location::caller()))
    }

    /// Acquires a lock that is free now, whatever `wait` the request or the manager has.
    ///
    /// If a majority of the nodes answers "held", it returns at once. It waits about one second for nodes that do not answer. The
    /// first call of a manager also waits up to two seconds for its connections. If locks of this manager
    /// [linger](LockManagerBuilder::linger), a taken lock may be idle: the process that keeps it is asked to release it, and has one node
    /// timeout to answer.
    ///
    /// # Errors
    /// - [`LockError::Contended`]: another caller holds the lock.
    /// - [`LockError::NoQuorum`]: too few nodes answered. Retrying can help.
    /// - [`LockError::Refused`]: too many nodes rejected the call. Retrying does not help.
    /// - [`LockError::InvalidKey`], [`LockError::Configuration`]: the request is invalid. A request with
    ///   [`once_per`](LockRequest::once_per) is invalid here, because it needs a wait.
    /// - [`LockError::Lost`]: a [reentrant](LockRequest::reentrant) call entered a lock that has ended.
    /// - [`LockError::Closed`]: after [`shutdown`](Self::shutdown).
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Cancel safe, like [`acquire`](Self::acquire).
    #[doc(alias = "try_lock")]
    #[track_caller]
    pub fn try_acquire<F: Fencing>(
        &self,
        request: impl Into<LockRequest<F>>,
    ) -> impl Future<Output = Result<F::Guard, LockError>> {
        self.acquire(request.into().wait(Wait::None))
    }

    async fn acquire_inner<F: Fencing>(&self, request: AcquireRequest) -> Result<F::Guard, LockError> {
        acquire(&self.local, &request).await.map(Acquired).and_then(F::guard)
    }

    /// Runs `body` while it holds the lock: the closure form of the attribute.
    ///
    /// If the lease ends first, a body that waits at an `.await` is dropped there. A body that computes continues without the lock until it
    /// waits. If it ends before that, its own result is returned: `Ok` does not prove that the lock was held to the end;
    /// [`ensure_held`](LockGuard::ensure_held) does. Tasks that it has spawned are not stopped, unless they
    /// [inherit](LockGuard::inherit) the lock. The lock is released however the body exits: return, `?`,
    /// panic, cancellation. The call does not wait for the answer to the release.
    ///
    /// Write an async closure: `async |guard| { .. }`. A closure that returns an async block does not compile.
    ///
    /// # Errors
    /// The errors of [`acquire`](Self::acquire), and [`LockError::Lost`] if the body was stopped, converted to the error type of
    /// the body ([`FromLockError`]). After [`LockError::NoQuorum`] the body has not run; the key may stay on some nodes until they
    /// have answered the release or the key has expired. A failed release after the body is not an error;
    /// [`Stats::releases`](crate::admin::Stats::releases) counts it.
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

    /// Waits until locks work on a majority of the nodes, for at most two seconds.
    ///
    /// Optional: calls work without it. Use it when a service starts, to fail early with the reason. Like [`check`](Self::check),
    /// it queries each node and tries a lock there, but it ignores mere risks. A restarted node that does not vote yet is missing;
    /// see [`AfterRestart`](crate::tuning::AfterRestart).
    ///
    /// # Errors
    /// - [`LockError::NoQuorum`]: too few nodes work. It contains one cause for each missing node.
    /// - [`LockError::Refused`]: waiting does not help, because of a wrong setting or a missing permission. It returns at once, and
    ///   its causes contain the remedy.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Nothing is left behind once the nodes answer.
    pub async fn ready(&self) -> Result<(), LockError> {
        check::ready(self.shared()).await
    }

    /// Queries the state and the settings of every node, and tries a lock there. Use it for the log of a starting service, and as
    /// an operator.
    ///
    /// The trial acquires, extends, waits for, hands over, attaches and releases one lock, and then a fenced one. The report contains
    ///
    /// - the reason why a node is missing for a majority. It is unreachable, a replica, a Sentinel, a member of a cluster, recently
    ///   restarted or too slow for the node timeout, or it rejects a command that locks need. [`ready`](Self::ready) fails if too
    ///   few nodes are left;
    /// - risks of the servers: eviction, replicas that may be promoted, a single server without persistence, a wrong clock, one
    ///   node too many;
    /// - missing permissions that make waiting slow or fencing impossible.
    ///
    /// The lock is named `redlock:check:` and a fresh token, below the [namespace](LockManagerBuilder::namespace). If the user may
    /// not access that name, the report contains the pattern to grant, and no lock was tried.
    ///
    /// The call takes at most five seconds, and far less if all nodes answer. Facts that the user may not query are left open. It
    /// cannot compare the nodes and settings of different processes. It does not notice if a node with `appendonly yes` and
    /// `appendfsync always` has come back without its data.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// Nothing is left behind once the nodes answer: the trial lock is released.
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

    /// Rejects new acquisitions with [`LockError::Closed`], releases [idle](LockManagerBuilder::linger) locks, and waits until every
    /// pending release is answered.
    ///
    /// Call it before the process ends, so that the last releases are not lost. Guards that are still held stay valid and release their
    /// locks as usual. [Reentrant](crate::LockRequest::reentrant) calls in their bodies still enter them.
    ///
    /// Returns `false` if a node did not answer a release before its key had expired. This limits the wait to the longest `ttl` in
    /// use; to end sooner, wrap it in `tokio::time::timeout`. The future of a [`LockGuard::release`] is a pending release until it
    /// is finished or dropped.
    ///
    /// # Panics
    /// On a tokio runtime without time enabled.
    ///
    /// # Cancel safety
    /// The manager stays closed. The releases continue in the background.
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
