//! When a body must stop.

use crate::error::LockError;
use crate::guard::LockGuard;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep};

/// Asked at every poll of a body, because the timer sleeps while the machine is suspended and the lease does not.
pub(crate) fn held(guard: &LockGuard) -> Result<(), LockError> {
    if guard.is_held() { Ok(()) } else { Err(guard.lost()) }
}

/// Wakes the task of a body when its lease runs out. Made at the first wait: a body that never waits costs no timer.
#[derive(Debug)]
pub(crate) struct Expiry(Option<Pin<Box<Sleep>>>);

impl Expiry {
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Ready when the lease has run out.
    pub(crate) fn poll_lost(&mut self, guard: &LockGuard, cx: &mut Context<'_>) -> Poll<LockError> {
        loop {
            let expiry = self.0.get_or_insert_with(|| Box::pin(sleep(guard.remaining())));
            ready!(expiry.as_mut().poll(cx));
            let remaining = guard.remaining();
            if remaining.is_zero() {
                return Poll::Ready(guard.lost());
            }
            // A late answer or an extension has moved the deadline.
            expiry.as_mut().reset(Instant::now() + remaining);
        }
    }
}
