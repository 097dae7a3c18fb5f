//! What a caller asks for: the key, how long the lease is, how long to wait.

#[cfg(doc)]
use crate::error::LockError;
use crate::lock::{LockKey, LockPath, Mode};
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::window::Windows;
use crate::request::place::Place;
use crate::request::what::What;
use std::fmt;
use std::panic::Location;
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
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[must_use = "a request does nothing until a manager acquires it"]
pub struct LockRequest {
    pub(crate) what: What,
    pub(crate) mode: Mode,
    /// How many may have the lock at a time, if the request says so.
    pub(crate) permits: Option<u32>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) wait: Option<Wait>,
    pub(crate) hold: HoldOptions,
    /// For how long the lock stays held without a call, if the request says so.
    pub(crate) linger: Option<Duration>,
    /// The windows of time in each of which the lock is obtained once.
    pub(crate) windows: Option<Windows>,
    /// Whether a fencing token is wanted with the lock.
    pub(crate) is_fenced: bool,
    /// Whether it enters the lock of a call that encloses it.
    pub(crate) is_reentrant: bool,
    /// Whether a share of a lock may come with the token of another call: its guard is not left to another worker then.
    pub(crate) joins: bool,
    /// Whether it matters in which order the lock is taken.
    pub(crate) has_ordered_lock: bool,
    /// Who asks, as far as it is known: the attribute, or the call of the manager.
    pub(crate) place: Option<Place>,
    /// What stands for the template of an attribute.
    pub(crate) label: Option<&'static str>,
}

impl fmt::Debug for LockRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, mode, ttl, wait, hold, linger, windows, .. } = self;
        let Self { permits, is_fenced, is_reentrant, has_ordered_lock, place, label, .. } = self;
        let mut request = f.debug_struct("LockRequest");
        match what {
            What::Key(key) => request.field("key", key),
            What::Parts(parts) => request.field("parts", parts),
        };
        request.field("ttl", ttl).field("wait", wait).field("hold", hold);
        if mode.is_shared() {
            request.field("mode", mode);
        }
        if let Some(permits) = permits {
            request.field("permits", permits);
        }
        if let Some(linger) = linger {
            request.field("linger", linger);
        }
        if let Some(windows) = windows {
            request.field("windows", windows);
        }
        if *is_fenced {
            request.field("is_fenced", is_fenced);
        }
        if *is_reentrant {
            request.field("is_reentrant", is_reentrant);
        }
        if !*has_ordered_lock {
            request.field("has_ordered_lock", has_ordered_lock);
        }
        if let Some(place) = place {
            request.field("place", place);
        }
        if let Some(label) = label {
            request.field("label", label);
        }
        request.finish()
    }
}

impl LockRequest {
    /// A request for `key` with the manager's defaults.
    pub fn new(key: impl Into<LockKey>) -> Self {
        Self::of(What::Key(key.into()))
    }

    /// A request for `what` with the manager's defaults.
    pub(crate) fn of(what: What) -> Self {
        let (ttl, wait, linger, windows, is_fenced, place, label) = (None, None, None, None, false, None, None);
        let (hold, is_reentrant, joins, has_ordered_lock) = (HoldOptions::default(), false, false, true);
        let (mode, permits) = (Mode::Exclusive, None);
        Self {
            what,
            mode,
            permits,
            ttl,
            wait,
            hold,
            linger,
            windows,
            is_fenced,
            is_reentrant,
            joins,
            has_ordered_lock,
            place,
            label,
        }
    }

    /// The same request, by a call at that place in the source.
    pub(crate) fn asked_at(mut self, location: &'static Location<'static>) -> Self {
        self.place.get_or_insert(Place::Call(location));
        self
    }

    /// What the calls of this place are called in [`stats`](crate::LockManager::stats), spans and events: the template of the
    /// key, such as `order:{id}`, which an attribute has by itself. Default: none, and they are called by file and line.
    ///
    /// A text of the program and not of its data: each is counted by itself.
    pub const fn label(mut self, label: &'static str) -> Self {
        self.label = Some(label);
        self
    }

    /// The lifetime of the lock at the nodes, which is the longest that a crashed holder blocks others.
    ///
    /// Whole milliseconds, what is smaller is cut off. At most the
    /// [`longest_ttl`](crate::LockManagerBuilder::longest_ttl) of the manager, which is 60 s by default with several nodes;
    /// at least the node timeout, the clock drift and 2 ms together, because anything shorter could run out before the answer arrives.
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

    /// The maximum time for which the lock is held, including renewals. After this time it is lost, and the body is dropped at its next
    /// `.await`. For bodies that may hang. Default: none.
    ///
    /// Counted from when the lock was obtained. Without renewal it can only be shorter than the `ttl`.
    pub const fn max_hold(mut self, longest: Duration) -> Self {
        self.hold.max_hold = Some(longest);
        self
    }

    /// The minimum time for which the key stays taken, even if the guard is dropped earlier: at most one call per that time.
    /// Default: none.
    ///
    /// The time counts from the acquisition, at most 30 days. No process releases the lock earlier; `redlock break` can. It is a pause
    /// between two calls. For a job that runs at set times, use [`once_per`](Self::once_per): with `min_hold`, a slightly early tick finds
    /// the key of the previous run.
    ///
    /// If a majority of the servers restarts without its data within that time, even one after the other, the next call begins too early:
    /// a restarted server is ignored for one [`longest_ttl`](crate::LockManagerBuilder::longest_ttl) only. Servers that keep their data
    /// (`appendonly yes`) keep the time as well.
    pub const fn min_hold(mut self, least: Duration) -> Self {
        self.hold.min_hold = Some(least);
        self
    }

    /// For how long this process keeps the lock after the call, in case that it wants it again soon: the next call here has
    /// it without a command. Zero for not at all, whatever the manager says.
    /// Default: the manager's [`linger`](crate::LockManagerBuilder::linger), which says when to use it and what others see.
    ///
    /// It goes neither with [`min_hold`](Self::min_hold) nor with [`once_per`](Self::once_per). A lock that is given back by
    /// [`release`](crate::LockGuard::release), or left by [`detach`](crate::LockGuard::detach), is not kept.
    pub const fn linger(mut self, linger: Duration) -> Self {
        self.linger = Some(linger);
        self
    }

    /// At most one call in each window of time, over all processes: for a job that every process starts at the same
    /// times and one of them is to do. Default: none.
    ///
    /// Time is cut into windows of length `period`, each around a multiple of it since 1970 in UTC: with 15 minutes, from
    /// half of a window before every quarter of an hour to half of one after it. So ticks at full periods lie in the middle
    /// of their windows, and may come early or late by nearly half a period. For other ticks, see
    /// [`window_start`](Self::window_start).
    ///
    /// The time is that of the nodes: the median of a majority, which is asked for it with the command `TIME`. The window
    /// that it lies in stands in the key, as in `report@1960032`, and the key outlives the window by a period. A call
    /// that comes later in the same window is [`LockError::WindowTaken`], and `on_contended = skip` of the attribute
    /// skips it.
    ///
    /// A window is used up when its guard is dropped, **even if the body did nothing**, unless
    /// [`give_back_window`](crate::LockGuard::give_back_window) was called. If its process crashes, the window is free again
    /// after the `ttl`. A body that runs into the next window does not prevent the next run: limit it with
    /// [`max_hold`](Self::max_hold).
    ///
    /// Ticks must not fall on the edge of a window: one of two neighbouring ticks then falls into the wrong window, and a window is
    /// skipped.
    ///
    /// At least 100 ms and at most 30 days. The `wait` is for whoever runs the window at present, and 1 s unless the request
    /// says something else; it ends with the window. Whether that one still runs is not known to others, so that a call which
    /// comes after the end of its body waits as well; [`wait`](Self::wait) makes that shorter, and should be some round trips at
    /// least. It cannot be [`Wait::None`]: when several calls come at the same
    /// moment, each might find the vote of a node with another one, and the window would be nobody's. It goes neither with
    /// `min_hold` nor with fencing tokens, which tell the owners of one key apart: each window has a key of its own.
    ///
    /// Servers that lose their data forget which windows have run. One of three may do so. If a majority does so after the run, even one
    /// after the other, the window can run twice. Make the job repeatable.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let request = LockRequest::new("report").once_per(Duration::from_secs(900));
    /// manager.acquire(request.clone()).await?.release().await?;
    /// let error = manager.acquire(request).await.unwrap_err();
    /// assert!(matches!(error, LockError::WindowTaken { .. }));
    /// # Ok(()) }
    /// ```
    pub const fn once_per(mut self, period: Duration) -> Self {
        self.windows = Some(Windows::around_multiples(period));
        self
    }

    /// Whether the call enters the lock of its own caller. Default: `false`, and it is told
    /// [`LockError::WouldDeadlock`].
    ///
    /// A caller is a body that the call is made in, of the same manager and with the same key: that of
    /// [`with_lock`](crate::LockManager::with_lock), of an annotated function, or of
    /// [`LockGuard::scope`](crate::LockGuard::scope). A task that the body spawns is no call of it, unless it was given the lock by
    /// [`LockGuard::inherit`](crate::LockGuard::inherit). Without such a caller, the call takes the lock as any other; so it does
    /// in a body that goes on after its lock was given back or lost.
    ///
    /// # What a nested call has
    /// No command is sent, and the guard is a *view* of the caller's lock:
    ///
    /// - It has no lease of its own. Its `ttl`, [`renew`](Self::renew) and [`linger`](Self::linger) say nothing: those of the
    ///   caller count, and a shorter `ttl` ends nothing early. When the lock is lost, the nested call has lost it as well, for
    ///   the same [cause](crate::LossCause); when the caller has given it back, that is
    ///   [`Released`](crate::LossCause::Released).
    /// - [`max_hold`](Self::max_hold) is its own, counted from when it entered, and [`min_hold`](Self::min_hold) becomes one of
    ///   the lock. A fencing token is that of the caller, which must have one. In a body that goes on after the end of its
    ///   `max_hold`, a reentrant call is told [`LockError::Lost`], as long as the caller has the lock.
    /// - It has the lock as its caller has it, [shared](Self::shared) or alone. A call for a share may enter either; one that
    ///   wants the lock alone in the body of a reader is told [`LockError::WouldDeadlock`]: take the exclusive lock there.
    /// - It ends without giving the lock back: [`release`](crate::LockGuard::release) sends nothing, and says by
    ///   [`LockError::Lost`] if the lock was gone before; [`detach`](crate::LockGuard::detach) leaves nothing that could be taken up.
    /// - Two nested calls that do not enclose each other, as the branches of a `join!` in one body, take turns. The `wait` is
    ///   for that. A nested guard that has no [`scope`](crate::LockGuard::scope) keeps other nested calls of that body waiting,
    ///   those after it as well: what waits for longer than a second is a warning in the log, with both lines.
    ///
    /// It does not go with [`once_per`](Self::once_per).
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let request = || LockRequest::new("order:7").reentrant(true);
    /// let pay = async || manager.with_lock(request(), async |_| Ok::<_, LockError>(42)).await;
    /// assert_eq!(pay().await?, 42);
    /// assert_eq!(manager.with_lock(request(), async |_| pay().await).await?, 42);
    /// # Ok(()) }
    /// ```
    pub const fn reentrant(mut self, is_reentrant: bool) -> Self {
        self.is_reentrant = is_reentrant;
        self
    }

    /// Whether the manager looks at the order in which this lock and those of its callers are taken. `false` where an order that
    /// contradicts others cannot make anybody wait; see [`OrderCheck`](crate::OrderCheck). Default: `true`.
    pub const fn order_check(mut self, is_checked: bool) -> Self {
        self.has_ordered_lock = is_checked;
        self
    }

    /// When one of the windows of [`once_per`](Self::once_per) begins, as the time since 1970 in UTC: `start`, and every
    /// period before and after it. Default: half a period before each multiple.
    ///
    /// For ticks that are not at multiples of the period: half a period before one of them, they are in the middle of their
    /// windows. It says nothing without `once_per`.
    pub const fn window_start(mut self, start: Duration) -> Self {
        if let Some(windows) = self.windows {
            self.windows = Some(windows.beginning_at(start));
        }
        self
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
