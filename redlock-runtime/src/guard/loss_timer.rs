//! When a body must stop.

use crate::error::LockError;
use crate::guard::held::Held;
use crate::protocol::timing::LOOKS_PER_CLAIM;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// How exact tokio's timers are. Smaller, a timer is set anew for nothing at every poll; larger, a body is stopped late.
const PRECISION: Duration = Duration::from_millis(1);

/// Whether a body may go on. It is asked at every poll of the body: a timer stands still while the machine is suspended, and
/// the lease does not.
///
/// # Errors
/// Why the lock is not held.
pub(crate) fn check_held(held: &Held) -> Result<(), LockError> {
    held.lets_go_on().then_some(()).ok_or_else(|| held.loss())
}

/// Wakes a task when a lease runs out or is lost before. Made at the first wait: a body that never waits costs no timer.
#[derive(Debug)]
pub(crate) struct LossTimer {
    timer: Option<Pin<Box<Sleep>>>,
    watcher: Option<u32>,
}

impl LossTimer {
    pub(crate) const fn new() -> Self {
        Self { timer: None, watcher: None }
    }

    /// Ready when the lease has run out.
    pub(crate) fn poll_lost(&mut self, held: &Held, cx: &mut Context<'_>) -> Poll<LockError> {
        self.poll_ahead(held, Duration::ZERO, cx)
    }

    /// Ready `margin` before the lease ends.
    pub(crate) fn poll_ahead(&mut self, held: &Held, margin: Duration, cx: &mut Context<'_>) -> Poll<LockError> {
        if held.is_released() {
            // The body has given it back on purpose, and goes on without it.
            return Poll::Pending;
        }
        loop {
            let left = held.watch(&mut self.watcher, cx.waker());
            // A claim is short by its nature: that says nothing before its extension had time to be answered.
            let is_short = !margin.is_zero() && held.stands_on_claims();
            let remaining = if is_short { left / LOOKS_PER_CLAIM } else { left.saturating_sub(margin) };
            if remaining.is_zero() {
                return Poll::Ready(held.loss());
            }
            let at = Instant::now() + remaining;
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
            // Renewals move the deadline on. That matters only when the timer has fired.
            if timer.is_elapsed() || timer.deadline() > at + PRECISION {
                timer.as_mut().reset(at);
            }
            ready!(timer.as_mut().poll(cx));
        }
    }

    /// Nobody is to be woken any more. Whoever is done with the lock says so: the acquisition of a nested call is that of its
    /// caller, and lasts longer.
    pub(crate) fn forget(&mut self, held: &Held) {
        if let Some(watcher) = self.watcher.take() {
            held.forget_watcher(watcher);
        }
    }
}

/// A [`LossTimer`] for what stands behind a guard, forgotten when it is dropped.
pub(crate) struct Watched<'g> {
    held: &'g Held,
    timer: LossTimer,
}

impl<'g> Watched<'g> {
    pub(crate) const fn new(held: &'g Held) -> Self {
        Self { held, timer: LossTimer::new() }
    }

    pub(crate) const fn held(&self) -> &'g Held {
        self.held
    }

    /// As [`LossTimer::poll_lost`].
    pub(crate) fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LockError> {
        self.timer.poll_lost(self.held, cx)
    }

    /// As [`LossTimer::poll_ahead`].
    pub(crate) fn poll_ahead(&mut self, margin: Duration, cx: &mut Context<'_>) -> Poll<LockError> {
        self.timer.poll_ahead(self.held, margin, cx)
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.timer.forget(self.held);
    }
}
