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
    /// It is ready so long before the end of the lease.
    margin: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    watcher: Option<u32>,
}

impl LossTimer {
    pub(crate) const fn new() -> Self {
        Self::ahead(Duration::ZERO)
    }

    /// A timer that is ready `margin` before the lease ends.
    pub(crate) const fn ahead(margin: Duration) -> Self {
        Self { margin, timer: None, watcher: None }
    }

    /// Ready when the lease has run out.
    pub(crate) fn poll_lost(&mut self, held: &Held, cx: &mut Context<'_>) -> Poll<LockError> {
        if held.is_released() {
            // The body has given it back on purpose, and goes on without it.
            return Poll::Pending;
        }
        loop {
            let left = held.watch(&mut self.watcher, cx.waker());
            // A claim is short by its nature: that says nothing before its extension had time to be answered.
            let is_short = !self.margin.is_zero() && held.stands_on_claims();
            let remaining = if is_short { left / LOOKS_PER_CLAIM } else { left.saturating_sub(self.margin) };
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

    /// The number under which the acquisition knows it.
    pub(crate) const fn watcher(&self) -> Option<u32> {
        self.watcher
    }
}
