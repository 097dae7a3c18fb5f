//! Timer that stops a body when its lock is lost.

use crate::client::enclosing::BodyHold;
use crate::client::timers::sleep_until;
use crate::error::LockError;
use crate::protocol::timing::LOOKS_PER_CLAIM;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Precision of tokio's timers: 1 ms. Too small: every poll resets the timer. Too large: a body is stopped late.
const PRECISION: Duration = Duration::from_millis(1);

/// Lock that a [`LossTimer`] can watch: the lock of a guard, or an inherited one.
pub(crate) trait Watchable {
    /// Returns `true` if the watching body has released the lock itself. It then continues without the lock.
    fn is_released_by_body(&self) -> bool;

    /// Returns the time for which the lock is provably held. Zero if it is lost or released.
    fn remaining(&self) -> Duration;

    /// Returns the error that explains why the lock is not held.
    fn loss(&self) -> LockError;

    /// Returns `true` if the remaining time counts claims whose extensions are not answered yet.
    fn depends_on_claims(&self) -> bool;

    /// Registers `waker`, which is woken when the lock is lost or released. Returns [`remaining`](Self::remaining) after that.
    fn watch(&self, watcher: &mut Option<u32>, waker: &Waker) -> Duration;

    /// Removes a watcher that [`watch`](Self::watch) has registered.
    fn forget_watcher(&self, watcher: u32);
}

/// Inherited lock. A task cannot release the lock of its parent. If the parent's guard has ended, the lock is lost for the task.
impl Watchable for BodyHold {
    fn is_released_by_body(&self) -> bool {
        false
    }

    fn remaining(&self) -> Duration {
        self.remaining()
    }

    fn loss(&self) -> LockError {
        self.loss()
    }

    fn depends_on_claims(&self) -> bool {
        self.acquisition().depends_on_claims()
    }

    fn watch(&self, watcher: &mut Option<u32>, waker: &Waker) -> Duration {
        self.watch(watcher, waker);
        self.remaining()
    }

    fn forget_watcher(&self, watcher: u32) {
        self.acquisition().forget_watcher(watcher);
    }
}

/// Checks whether a body may continue. Called at each poll of the body: a timer stops while the machine is suspended, and the lease
/// does not.
///
/// # Errors
/// [`LockError::Lost`], with the cause.
pub(crate) fn check_held(held: &impl Watchable) -> Result<(), LockError> {
    if held.is_released_by_body() || !held.remaining().is_zero() { Ok(()) } else { Err(held.loss()) }
}

/// Timer that wakes a task when a lease ends or is lost. Created at the first wait, so a body that never waits has no timer.
#[derive(Debug)]
pub(crate) struct LossTimer {
    timer: Option<Pin<Box<Sleep>>>,
    watcher: Option<u32>,
}

impl LossTimer {
    pub(crate) const fn new() -> Self {
        Self { timer: None, watcher: None }
    }

    /// Is ready when the lease has ended.
    pub(crate) fn poll_lost(&mut self, held: &impl Watchable, cx: &mut Context<'_>) -> Poll<LockError> {
        self.poll_ahead(held, Duration::ZERO, cx)
    }

    /// Is ready `margin` before the lease ends.
    pub(crate) fn poll_ahead(
        &mut self,
        held: &impl Watchable,
        margin: Duration,
        cx: &mut Context<'_>,
    ) -> Poll<LockError> {
        if held.is_released_by_body() {
            // The body released the lock itself, and continues without it.
            return Poll::Pending;
        }
        loop {
            let left = held.watch(&mut self.watcher, cx.waker());
            // A claim is always short. It means no danger until its extension had time to be answered.
            let is_short = !margin.is_zero() && held.depends_on_claims();
            let remaining = if is_short { left / LOOKS_PER_CLAIM } else { left.saturating_sub(margin) };
            if remaining.is_zero() {
                return Poll::Ready(held.loss());
            }
            let at = Instant::now() + remaining;
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
            // A renewal moves the deadline. The timer is reset only after it has fired.
            if timer.is_elapsed() || timer.deadline() > at + PRECISION {
                timer.as_mut().reset(at);
            }
            ready!(timer.as_mut().poll(cx));
        }
    }

    /// Removes the watcher. The user of the lock must call it: a nested call shares the acquisition of its caller, which lasts
    /// longer.
    pub(crate) fn forget(&mut self, held: &impl Watchable) {
        if let Some(watcher) = self.watcher.take() {
            held.forget_watcher(watcher);
        }
    }
}

/// Lock with its [`LossTimer`]. Dropping it removes the watcher.
pub(crate) struct Watched<'g, L: Watchable> {
    held: &'g L,
    timer: LossTimer,
}

impl<'g, L: Watchable> Watched<'g, L> {
    pub(crate) const fn new(held: &'g L) -> Self {
        Self { held, timer: LossTimer::new() }
    }

    /// Waits until the lock is lost or released, or until less than `margin` is left of its lease.
    pub(crate) async fn lost(mut self, margin: Duration) -> LockError {
        poll_fn(|cx| {
            let lost = self.poll_ahead(margin, cx);
            // Checked after the registration: from then on, a release wakes this task.
            if self.held.is_released_by_body() { Poll::Ready(self.held.loss()) } else { lost }
        })
        .await
    }

    pub(crate) const fn held(&self) -> &'g L {
        self.held
    }

    /// Polls for a loss; see [`LossTimer::poll_lost`].
    pub(crate) fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LockError> {
        self.timer.poll_lost(self.held, cx)
    }

    /// Polls for the end of a lease; see [`LossTimer::poll_ahead`].
    pub(crate) fn poll_ahead(&mut self, margin: Duration, cx: &mut Context<'_>) -> Poll<LockError> {
        self.timer.poll_ahead(self.held, margin, cx)
    }
}

impl<L: Watchable> Drop for Watched<'_, L> {
    fn drop(&mut self) {
        self.timer.forget(self.held);
    }
}
