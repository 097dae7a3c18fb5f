//! Runs a body while its lock is held, and not longer.

use crate::error::LockError;
use crate::guard::LockGuard;
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep};

pin_project! {
    /// The future of [`hold`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Hold<'g, F> {
        // Before the guard: fields drop in this order, and the body must be gone before the lock is.
        #[pin]
        body: Option<F>,
        guard: &'g LockGuard,
        expiry: Expiry,
    }
}

/// Runs `body` as long as `guard` provably holds its lock.
///
/// The deadline is local: whatever the network does, the body is dropped when the lease cannot be proven any more, and
/// the result is [`LockError::Lost`]. A body that has finished has finished, even if that took too long.
pub const fn hold<F: Future>(guard: &LockGuard, body: F) -> Hold<'_, F> {
    Hold { body: Some(body), guard, expiry: Expiry(None) }
}

impl<F: Future> Future for Hold<'_, F> {
    type Output = Result<F::Output, LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        // At every poll, because the timer sleeps while the machine is suspended and the lease does not.
        if !this.guard.is_held() {
            this.body.set(None);
            return Poll::Ready(Err(this.guard.lost()));
        }
        if let Some(body) = this.body.as_mut().as_pin_mut()
            && let Poll::Ready(output) = body.poll(cx)
        {
            return Poll::Ready(Ok(output));
        }
        let error = ready!(this.expiry.poll_lost(this.guard, cx));
        this.body.set(None);
        Poll::Ready(Err(error))
    }
}

/// Wakes the task of a body when its lease runs out. Made at the first wait: a body that never waits costs no timer.
#[derive(Debug, Default)]
pub(crate) struct Expiry(Option<Pin<Box<Sleep>>>);

impl Expiry {
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

pin_project! {
    /// The future of [`hold_through`].
    #[must_use = "futures do nothing unless polled"]
    pub struct HoldThrough<'g, F> {
        // Before the guard, as in `Hold`.
        #[pin]
        body: Option<F>,
        guard: &'g LockGuard,
        has_begun: bool,
    }
}

/// Runs `body` to its end, whatever becomes of the lease; the guard says whether the lock is still held.
///
/// It does not begin without the lock.
pub const fn hold_through<F: Future>(guard: &LockGuard, body: F) -> HoldThrough<'_, F> {
    HoldThrough { body: Some(body), guard, has_begun: false }
}

impl<F: Future> Future for HoldThrough<'_, F> {
    type Output = Result<F::Output, LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if !*this.has_begun && !this.guard.is_held() {
            this.body.set(None);
            return Poll::Ready(Err(this.guard.lost()));
        }
        *this.has_begun = true;
        match this.body.as_pin_mut() {
            Some(body) => body.poll(cx).map(Ok),
            None => Poll::Pending,
        }
    }
}

impl<F> std::fmt::Debug for HoldThrough<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HoldThrough").field("guard", self.guard).finish_non_exhaustive()
    }
}

impl<F> std::fmt::Debug for Hold<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hold").field("guard", self.guard).finish_non_exhaustive()
    }
}
