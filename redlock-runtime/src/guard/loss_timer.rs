//! When a body must stop.

use crate::error::LockError;
use crate::guard::lock_guard::LockGuard;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Of tokio's timers.
const PRECISION: Duration = Duration::from_millis(1);

/// Asked at every poll of a body, because the timer sleeps while the machine is suspended and the lease does not.
pub(crate) fn held(guard: &LockGuard) -> Result<(), LockError> {
    guard.goes_on().then_some(()).ok_or_else(|| guard.loss())
}

/// Wakes a task when a lease runs out or is lost before. Made at the first wait: a body that never waits costs no timer.
#[derive(Debug)]
pub(crate) struct Expiry {
    /// This much before the end.
    margin: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    watcher: Option<u64>,
}

impl Expiry {
    pub(crate) const fn new() -> Self {
        Self::ahead(Duration::ZERO)
    }

    /// That ends `margin` before the lease does.
    pub(crate) const fn ahead(margin: Duration) -> Self {
        Self { margin, timer: None, watcher: None }
    }

    /// Ready when the lease has run out.
    pub(crate) fn poll_lost(&mut self, guard: &LockGuard, cx: &mut Context<'_>) -> Poll<LockError> {
        if guard.is_released() {
            // The body has given it back on purpose, and goes on without it.
            return Poll::Pending;
        }
        loop {
            let remaining = guard.watch(&mut self.watcher, cx.waker()).saturating_sub(self.margin);
            if remaining.is_zero() {
                return Poll::Ready(guard.loss());
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

    /// The number under which the guard knows it.
    pub(crate) const fn watcher(&self) -> Option<u64> {
        self.watcher
    }
}
