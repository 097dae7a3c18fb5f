//! Request of a caller: the key, the mode, and the limits of holding and waiting.

#[cfg(doc)]
use crate::error::LockError;
use crate::lock::{LockKey, LockPath, Mode};
use crate::protocol::window::Windows;
use crate::request::acquire_request::AcquireRequest;
use crate::request::fencing::{Fenced, Unfenced};
use crate::request::lock_target::LockTarget;
use crate::request::{LockPart, Wait};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// Lock to acquire: its key, its mode and its limits.
///
/// Methods that take a request also accept a plain key, and then use the manager's defaults. A request for a
/// [fencing token](Self::fencing) is a `LockRequest<Fenced>`, and its guard is a [`FencedGuard`](crate::FencedGuard).
///
/// # Examples
/// ```
/// # use redlock_runtime::{LockError, LockManager, LockRequest};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let locks = LockManager::in_memory();
/// let guard = locks.acquire(LockRequest::new("order:7").ttl(Duration::from_secs(10))).await?;
/// # guard.release().await?; locks.acquire("order:7").await?; Ok(()) }
/// ```
#[must_use = "a request does nothing until a manager acquires it"]
pub struct LockRequest<F = Unfenced> {
    pub(crate) inner: AcquireRequest,
    fencing: PhantomData<fn() -> F>,
}

impl LockRequest {
    /// Requests an exclusive lock of `key`, with the manager's defaults.
    pub fn new(key: impl Into<LockKey>) -> Self {
        Self::from_inner(AcquireRequest::new(LockTarget::Key(key.into())))
    }

    /// Requests a shared lock of `key`, with the manager's defaults: any number of readers hold it at the same time, and no writer.
    ///
    /// Equivalent to `LockRequest::new(key).mode(Mode::Shared)`. A *writer* is a caller with an exclusive lock of the same key.
    ///
    /// Use it if reading takes long enough that readers would wait for each other. For bodies that are shorter than a round trip to the
    /// nodes, an exclusive lock can be faster: within a process it passes from call to call without a command. A shared lock costs a node
    /// about 1.5 times as much as an exclusive one, and twice as much under high load.
    ///
    /// # Order
    /// Readers and writers are served in the order in which they began to wait. A reader does not overtake a waiting writer, and all
    /// readers between two writers enter together. Writers of one process are an exception: one of them waits in the queues of the nodes,
    /// and the lock may pass from one to the next within the limits of [`local_handover`](crate::tuning::Tuning::local_handover).
    ///
    /// # Readers of one process
    /// Bodies of [`with_lock`](crate::LockManager::with_lock) and of the attribute with the same key and `ttl`, with renewal and without
    /// `min_hold`, share one token and one lease. The first reader asks the nodes, later readers *join* without a command, and the last
    /// one releases the lock. [`max_hold`](Self::max_hold) applies to each reader. All of them learn of a loss.
    ///
    /// Readers do not join while a writer of this process waits. While a writer of another process waits, readers join within the
    /// limits of [`local_handover`](crate::tuning::Tuning::local_handover). A token is joined for at most one `ttl`.
    ///
    /// A guard of [`acquire`](crate::LockManager::acquire) has a separate token and a separate lease. It can be
    /// [detached](crate::LockGuard::detach).
    ///
    /// # Restrictions
    /// - [`linger`](Self::linger), [`once_per`](Self::once_per) and [`fencing`](Self::fencing) cannot be combined with a shared lock.
    /// - [`min_hold`](Self::min_hold) keeps writers out for that time, but not readers.
    /// - A writer can become a reader with [`downgrade`](crate::LockGuard::downgrade). A reader cannot become a writer: two readers that
    ///   tried would wait for each other.
    /// - A reader must not acquire a second shared lock of the same key while a writer may wait: the second request waits behind the
    ///   writer, and the writer waits for the first. Within one process such a call fails with [`LockError::WouldDeadlock`]. A deadlock
    ///   through another process cannot be detected.
    ///
    /// # Errors
    /// When acquired: [`LockError::Configuration`] in combination with `fencing`, `once_per` or `linger`.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::in_memory();
    /// let one = locks.acquire(LockRequest::shared("config")).await?;
    /// let other = locks.acquire(LockRequest::shared("config")).await?;
    /// assert!(one.is_held() && other.is_held());
    /// assert!(locks.try_acquire("config").await.unwrap_err().is_contended());
    /// # Ok(()) }
    /// ```
    pub fn shared(key: impl Into<LockKey>) -> Self {
        Self::new(key).mode(Mode::Shared)
    }

    /// Requests several keys or paths at once, all or none of them, with the manager's defaults.
    ///
    /// A call waits until all of its keys are free at the same time, and holds none of them while it waits. The order of the keys does not
    /// matter: calls that name the same keys in different orders cannot deadlock. Equal keys are merged; the result is exclusive unless
    /// all of them are shared.
    ///
    /// Each part is a key, a [`LockPath`], or a [`LockPart`] with its own mode. [`mode`](Self::mode) sets the mode of all others.
    ///
    /// # Restrictions
    /// - In a cluster, all keys of a request must be in one hash slot. Give them a common hash tag: `{acme}:from` and `{acme}:to`.
    /// - The lock is not passed from call to call within a process: each call asks the nodes.
    /// - [`once_per`](Self::once_per) and [`linger`](Self::linger) cannot be combined with several keys.
    /// - A [fencing token](Self::fencing) covers all exclusive keys of the request: it is larger than each earlier token of any of them.
    ///   Shared keys are not covered.
    ///
    /// Errors and events show all keys, as in `"a" + "b"`. [`LockGuard::keys`](crate::LockGuard::keys) returns each of them.
    ///
    /// # Errors
    /// When acquired: [`LockError::InvalidKey`] for an invalid part, for no part, for more than 16 parts, and for more than 64
    /// names including the ancestors of paths; [`LockError::Configuration`] for keys in different slots of a cluster, for fencing
    /// if all parts are shared, and in combination with `once_per`, `linger` or `permits`.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockPart, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::in_memory();
    /// let guard = locks.acquire(LockRequest::all(["account:8", "account:7"])).await?;
    /// assert_eq!(guard.keys().count(), 2);
    /// assert!(locks.try_acquire("account:7").await.unwrap_err().is_contended());
    /// let request = || LockRequest::all([LockPart::shared("config"), "job:7".into()]);
    /// locks.acquire(request()).await?.release().await
    /// # }
    /// ```
    pub fn all<P: Into<LockPart>>(parts: impl IntoIterator<Item = P>) -> Self {
        Self::from_inner(AcquireRequest::new(LockTarget::Parts(parts.into_iter().map(Into::into).collect())))
    }

    /// Requests a path and everything below it, with the manager's defaults.
    ///
    /// An exclusive lock of a path excludes all locks of the path itself, of its ancestors and of its descendants, but not of its
    /// siblings. While `/acme/reports` is held, `/acme/invoices` is free, and `/acme` and `/acme/reports/2024` are not. This applies to
    /// calls that use paths as well. The root `/` cannot be locked.
    ///
    /// In Redis, `/acme/reports` is stored as `/{acme}/reports`, and errors and events show that name. All paths with the same
    /// first segment are in one slot of a cluster. A *key* with the name of a path excludes that path, but not its ancestors and
    /// descendants.
    ///
    /// To lock several paths, pass them to [`all`](Self::all) as [`LockPath`]s.
    ///
    /// # Errors
    /// When acquired: [`LockError::InvalidKey`] for a path that [`LockPath::check`] rejects, such as one with an empty segment or
    /// with `..`; [`LockError::Configuration`] in combination with `once_per`, `linger` or `permits`.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::in_memory();
    /// let guard = locks.acquire(LockRequest::path("/acme/reports")).await?;
    /// assert_eq!(guard.key().as_str(), "/{acme}/reports");
    /// for path in ["/acme", "/acme/reports/2024"] {
    ///     assert!(locks.try_acquire(LockRequest::path(path)).await.unwrap_err().is_contended());
    /// }
    /// locks.acquire(LockRequest::path("/acme/invoices")).await?;
    /// # Ok(()) }
    /// ```
    pub fn path(path: impl Into<LockPath>) -> Self {
        Self::all([path.into()])
    }

    /// Requests a [fencing token](crate::FencingToken) with the lock: a number that is larger than that of every earlier holder. The
    /// guard is a [`FencedGuard`](crate::FencedGuard) then.
    ///
    /// Send the token along with every write, and let the storage reject a write whose token is smaller than the largest one it has seen.
    /// This is the only protection against a write that arrives after the lease has ended.
    ///
    /// A number is proposed together with the command that acquires the lock. It costs another round trip if it was too small: if the clock
    /// of another process is further ahead than this manager knows, or if keys with the same hash tag are acquired at the same time. When
    /// the lock passes from call to call within a process, no command is needed for the next token.
    ///
    /// Fenced and unfenced calls with the same key exclude each other. Only the fenced calls have tokens.
    ///
    /// # Stored data
    /// Each node stores at most 16 384 keys `redlock:f:{..}` for each namespace, whatever the number of locks, of about 161 bytes each.
    /// They do not expire. Tokens grow as long as no node loses these keys:
    ///
    /// - A holder sends its number to nodes that come back without their data. Servers may be restarted empty one after the other while the
    ///   lock is held.
    /// - If a node loses its keys after the release, the next majority may consist of that node and of nodes that have never stored the
    ///   number. Then the clocks decide: a proposed number is the median time of the servers. The next token is larger unless the clocks of
    ///   the servers were set back.
    ///
    /// # Errors
    /// When acquired: [`LockError::NoQuorum`] and [`LockError::Refused`] also if too few nodes accept a number; the lock is
    /// released then. [`LockError::Configuration`] for a shared lock, a permit, or `once_per`, and for a
    /// [reentrant](Self::reentrant) call whose caller has no token.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::in_memory();
    /// let guard = locks.acquire(LockRequest::new("order:7").fencing()).await?;
    /// let token = guard.fencing_token();
    /// println!("UPDATE orders SET state = 'paid', fencing_token = {token} WHERE id = 7 AND fencing_token <= {token}");
    /// guard.release().await
    /// # }
    /// ```
    pub fn fencing(self) -> LockRequest<Fenced> {
        LockRequest::from_inner(AcquireRequest { is_fenced: true, ..self.inner })
    }
}

impl<F> LockRequest<F> {
    pub(crate) const fn from_inner(inner: AcquireRequest) -> Self {
        Self { inner, fencing: PhantomData }
    }

    /// Sets the mode: exclusive, or [shared](LockRequest::shared) with others. Default: [`Mode::Exclusive`].
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.inner.mode = mode;
        self
    }

    /// Requests one of `permits` permits of the key: a counting semaphore across all processes. At most 1000.
    ///
    /// Use it for work that a few callers may do at the same time, such as exports of one tenant. With [`min_hold`](Self::min_hold) it is a
    /// rate limit: each permit stays taken for at least that time.
    ///
    /// # Order
    /// Waiters are served in the order in which they began to wait; a waiter keeps all later ones waiting, even those with a larger
    /// number. A call enters if fewer permits are taken than its own number. If a new version of the program changes the number, both
    /// numbers may be in use at the same time.
    ///
    /// A released permit passes to the longest waiting call of the same process without a command, unless a call of another process is
    /// known to have waited longer. It does not pass to a call with another `ttl`, or whose number is already reached. A permit with
    /// `min_hold` does not pass.
    ///
    /// Every permit has a separate lease. If a process crashes, each of its permits is free after the `ttl` of that permit. A
    /// crashed waiter occupies no permit, but the first waiter can delay the others for up to five seconds.
    ///
    /// # Differences from an exclusive lock
    /// - Entering takes one more round trip. The call first acquires an *admission lock*, under which one call at a time counts the other
    ///   permits.
    /// - A permit whose lease ends is lost for good ([`LockError::Lost`]).
    /// - If a node loses a permit, or was unreachable when the permit was taken, the permit is restored there only while a majority of the
    ///   nodes still has it, and after the calls that already wait. So a permit on a bare majority, such as two of three nodes, is lost if
    ///   one of these nodes loses it. An exclusive lock survives that.
    /// - [`fencing`](LockRequest::fencing), [`once_per`](Self::once_per), [`linger`](Self::linger), several keys and paths cannot be
    ///   combined with permits. A [detached](crate::LockGuard::detach) permit is released.
    /// - An exclusive lock of the same key waits until no permit is held. The first call that waits for a permit waits for exclusive
    ///   locks in the queue of the key.
    /// - A shared lock of the same key does not wait for permits. It counts as one permit; readers that have joined each other count as
    ///   one.
    /// - A [reentrant](Self::reentrant) call enters the permit of its caller, whatever its number. A nested call that is not reentrant
    ///   takes one more permit. If all are taken, it fails with [`LockError::WouldDeadlock`] after a second, because the other calls may
    ///   be waiting for the permit of its caller.
    ///
    /// # Errors
    /// When acquired: [`LockError::Configuration`] for 0 permits, for more than 1000, for the combinations above, and for a shared
    /// or exclusive [`mode`](Self::mode).
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::in_memory();
    /// let export = || LockRequest::new("export:acme").permits(2);
    /// let one = locks.acquire(export()).await?;
    /// let other = locks.acquire(export()).await?;
    /// assert!(locks.try_acquire(export()).await.unwrap_err().is_contended());
    /// drop(one);
    /// let next = locks.acquire(export()).await?;
    /// # Ok(()) }
    /// ```
    pub const fn permits(mut self, permits: u32) -> Self {
        self.inner.permits = Some(permits);
        if matches!(self.inner.mode, Mode::Exclusive) {
            self.inner.mode = Mode::Permit;
        }
        self
    }

    /// Sets the name of the call in [`stats`](crate::LockManager::stats), spans and events, such as `order:{id}`. Calls of the attribute
    /// are named by their template. Default: none; the call is named by its file and line.
    ///
    /// Use a constant of the program. Each distinct name is counted separately.
    pub const fn label(mut self, label: &'static str) -> Self {
        self.inner.label = Some(label);
        self
    }

    /// Sets the lifetime of the lock on the nodes: the longest time for which a crashed holder blocks others. Whole milliseconds; fractions
    /// are cut off. Default: the manager's [`default_ttl`](crate::LockManagerBuilder::default_ttl).
    ///
    /// At least the node timeout plus the clock drift plus 2 ms. At most the manager's [`max_ttl`](crate::tuning::Tuning::max_ttl), which
    /// is 60 s by default with several nodes.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.inner.ttl = Some(ttl);
        self
    }

    /// Sets how long to wait while another caller holds the key. A zero duration is [`Wait::None`].
    /// Default: the manager's [`default_wait`](crate::LockManagerBuilder::default_wait).
    pub fn wait(mut self, wait: impl Into<Wait>) -> Self {
        self.inner.wait = Some(wait.into());
        self
    }

    /// Turns off renewal: the lock is lost when its `ttl` is over. Default: the lease is renewed for as long as the guard exists, each time
    /// a third of it has passed. A failed renewal is retried until the lease ends.
    pub const fn without_renewal(mut self) -> Self {
        self.inner.hold.renew = false;
        self
    }

    /// Sets the maximum time for which the lock is held, including renewals. After this time the lock is lost, and the body is dropped at
    /// its next `.await`. Default: none.
    ///
    /// Use it for bodies that may hang. The time counts from the acquisition.
    ///
    /// # Errors
    /// When acquired: [`LockError::Configuration`] if it is longer than the `ttl` and renewal is off. The lock ends with its `ttl` then.
    pub const fn max_hold(mut self, max_hold: Duration) -> Self {
        self.inner.hold.max_hold = Some(max_hold);
        self
    }

    /// Sets the minimum time for which the key stays taken, even if the guard is dropped earlier: at most one call per that time. At most
    /// 30 days. Default: none.
    ///
    /// The time counts from the acquisition. No process releases the lock earlier; `redlock break` can. For a job that runs at set times,
    /// use [`once_per`](Self::once_per): with `min_hold`, a slightly early tick finds the key of the previous run.
    ///
    /// If a majority of the servers restarts without its data within that time, even one after the other, the next call begins too early: a
    /// restarted server is ignored for one [`max_ttl`](crate::tuning::Tuning::max_ttl) only. Servers that keep their data
    /// (`appendonly yes`) keep the time as well.
    pub const fn min_hold(mut self, min_hold: Duration) -> Self {
        self.inner.hold.min_hold = Some(min_hold);
        self
    }

    /// Sets how long this process keeps the lock after the call, so that its next call needs no command. Zero turns it off.
    /// Default: the manager's [`linger`](crate::LockManagerBuilder::linger), which explains when to use it.
    ///
    /// Cannot be combined with [`min_hold`](Self::min_hold) or [`once_per`](Self::once_per). A lock that is released by
    /// [`release`](crate::LockGuard::release) or left by [`detach`](crate::LockGuard::detach) is not kept.
    pub const fn linger(mut self, linger: Duration) -> Self {
        self.inner.linger = Some(linger);
        self
    }

    /// Allows at most one call in each window of time, across all processes: for a job that every process starts and one should run. From
    /// 100 ms to 30 days. Default: none.
    ///
    /// Time is divided into windows of length `period`, centred at multiples of it since 1970 in UTC. With 15 minutes, the window of
    /// 12:00 is 11:52:30 to 12:07:30. Timers that tick at full periods may be early or late by almost half a period. For other timers,
    /// set [`window_start`](Self::window_start). Ticks must not fall on the edge of a window: one of two neighbouring ticks then falls
    /// into the wrong window, and a window is skipped.
    ///
    /// The time is the median of the clocks of the nodes. The window is part of the key, as in `report@1960032`, and the key outlives the
    /// window by one period. A later call in the same window fails with [`LockError::WindowTaken`]; `on_contended = skip` of the attribute
    /// skips it.
    ///
    /// A window is used up when its guard is dropped, **even if the body did nothing**, unless
    /// [`reopen_window`](crate::LockGuard::reopen_window) was called. If its process crashes, the window is free again after the `ttl`. A
    /// body that runs into the next window does not prevent the next run: limit it with [`max_hold`](Self::max_hold).
    ///
    /// The `wait` is for the call that runs the window at present, and 1 s by default. Others cannot tell a finished run from a running
    /// one, so a call after the end of the run waits as well. To shorten this, set [`wait`](Self::wait) to a few round trips.
    /// [`Wait::None`] is rejected: calls that start at the same moment could then all give up.
    ///
    /// Servers that lose their data forget which windows have run. One of three may do so. If a majority does so after the run, even one
    /// after the other, the window can run twice. Make the job repeatable.
    ///
    /// Cannot be combined with `min_hold`, `linger`, `fencing`, permits, shared locks or several keys.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::in_memory();
    /// let request = LockRequest::new("report").once_per(Duration::from_secs(900));
    /// locks.acquire(request.clone()).await?.release().await?;
    /// let error = locks.acquire(request).await.unwrap_err();
    /// assert!(matches!(error, LockError::WindowTaken { .. }));
    /// # Ok(()) }
    /// ```
    pub const fn once_per(mut self, period: Duration) -> Self {
        self.inner.windows = Some(Windows::around_multiples(period));
        self
    }

    /// Sets the start of one window of [`once_per`](Self::once_per), as the time since 1970 in UTC; the others follow from it.
    /// Default: half a period before each multiple. Without `once_per` it has no effect.
    ///
    /// Use it for a timer that does not tick at multiples of the period: set it to half a period before one of the ticks.
    pub const fn window_start(mut self, start: Duration) -> Self {
        if let Some(windows) = self.inner.windows {
            self.inner.windows = Some(windows.beginning_at(start));
        }
        self
    }

    /// Lets the call enter the lock of its caller. Default: such a call fails with [`LockError::WouldDeadlock`].
    ///
    /// The caller is an enclosing body with the same manager and key: of [`with_lock`](crate::LockManager::with_lock), of an annotated
    /// function, or of [`LockGuard::scope`](crate::LockGuard::scope). A spawned task is not enclosed, unless it was given the lock by
    /// [`LockGuard::inherit`](crate::LockGuard::inherit). Without such a caller, the call acquires the lock as usual.
    ///
    /// Cannot be combined with [`once_per`](Self::once_per).
    ///
    /// # Nested calls
    /// A nested call sends no command. Its guard is a *view* of the caller's lock:
    ///
    /// - The lease is that of the caller. `ttl`, renewal and [`linger`](Self::linger) of the nested call have no effect. If the lock is
    ///   lost, the nested call loses it with the same [cause](crate::LossCause).
    /// - [`max_hold`](Self::max_hold) applies to the nested call, from its start. [`min_hold`](Self::min_hold) is added to the lock. The
    ///   fencing token is that of the caller, which must have one.
    /// - The mode is that of the caller. A nested call for a shared lock may enter an exclusive one. A nested call for an exclusive lock
    ///   under a shared one fails with [`LockError::WouldDeadlock`].
    /// - At its end, the lock stays with the caller: [`release`](crate::LockGuard::release) sends nothing, and
    ///   [`detach`](crate::LockGuard::detach) leaves nothing that could be attached.
    /// - Two nested calls in one body that do not enclose each other, such as the branches of a `join!`, take turns. `wait` limits that
    ///   time. A nested guard outside of a [`scope`](crate::LockGuard::scope) blocks later nested calls of that body until it is dropped;
    ///   a call that waits longer than a second logs a warning with both lines.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locks = LockManager::in_memory();
    /// let request = || LockRequest::new("order:7").reentrant();
    /// let pay = async || locks.with_lock(request(), async |_| Ok::<_, LockError>(42)).await;
    /// assert_eq!(pay().await?, 42);
    /// assert_eq!(locks.with_lock(request(), async |_| pay().await).await?, 42);
    /// # Ok(()) }
    /// ```
    pub const fn reentrant(mut self) -> Self {
        self.inner.is_reentrant = true;
        self
    }

    /// Excludes this lock from the check of the order in which locks are acquired ([`OrderCheck`](crate::OrderCheck)). Default: checked.
    ///
    /// Use it if a contradicting order cannot cause a deadlock here.
    pub const fn without_order_check(mut self) -> Self {
        self.inner.has_ordered_lock = false;
        self
    }
}

impl<F> Clone for LockRequest<F> {
    fn clone(&self) -> Self {
        Self::from_inner(self.inner.clone())
    }
}

impl<F> fmt::Debug for LockRequest<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<K: Into<LockKey>> From<K> for LockRequest {
    fn from(key: K) -> Self {
        Self::new(key)
    }
}

impl From<LockPath> for LockRequest {
    fn from(path: LockPath) -> Self {
        Self::path(path)
    }
}
