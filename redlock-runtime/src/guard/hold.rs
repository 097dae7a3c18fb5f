//! Runs a body while its lock is held, and not longer.

use crate::client::enclosing::Frame;
use crate::error::LockError;
use crate::guard::held::Held;
use crate::guard::lock_guard::LockGuard;
use crate::guard::loss_timer::{self, Watched};
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tracing::Span;

pin_project! {
    /// Future of [`hold`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Hold<'g, F> {
        // Declared before the guard: fields drop in this order, and the body must end before the lock does.
        #[pin]
        body: Option<F>,
        guard: &'g LockGuard,
        watched: Watched<'g, Held>,
        shows_guard: bool,
    }

    impl<F> PinnedDrop for Hold<'_, F> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            stop(&mut { this.body }, this.guard);
        }
    }
}

/// Runs `body` while `guard` provably holds its lock.
///
/// The deadline is local. If the lease cannot be proven any more, the body is dropped, whatever the network does, and the result is
/// [`LockError::Lost`]. The output of a finished body is returned even if the lease ended before.
pub const fn hold<F: Future>(guard: &LockGuard, body: F) -> Hold<'_, F> {
    Hold { body: Some(body), guard, watched: Watched::new(guard.held()), shows_guard: false }
}

impl<F> Hold<'_, F> {
    /// Marks the body as one with access to its guard: another branch of it may release the lock while a nested call waits.
    pub fn with_guard(mut self) -> Self {
        self.shows_guard = true;
        self
    }
}

impl<F: Future> Future for Hold<'_, F> {
    type Output = Result<F::Output, LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Err(error) = loss_timer::check_held(this.guard.held()) {
            stop(&mut this.body, this.guard);
            return Poll::Ready(Err(error));
        }
        if let Some(body) = this.body.as_mut().as_pin_mut() {
            let mut frame = None;
            let inside = Frame::enter(&mut frame, || this.guard.held().frame(*this.shows_guard));
            if let Poll::Ready(output) = body.poll(cx) {
                return Poll::Ready(Ok(output));
            }
            drop(inside);
        }
        let error = ready!(this.watched.poll_lost(cx));
        stop(&mut this.body, this.guard);
        Poll::Ready(Err(error))
    }
}

/// Drops a body inside the span of its call.
fn stop<F>(body: &mut Pin<&mut Option<F>>, guard: &LockGuard) {
    let _span = guard.held().span().map(|span| Span::clone(&span).entered());
    body.set(None);
}

pin_project! {
    /// Future of [`hold_through`].
    #[must_use = "futures do nothing unless polled"]
    pub struct HoldThrough<'g, F> {
        // Declared before the guard, as in `Hold`.
        #[pin]
        body: Option<F>,
        guard: &'g LockGuard,
        watched: Watched<'g, Held>,
        shows_guard: bool,
        has_begun: bool,
        is_lost: bool,
    }

    impl<F> PinnedDrop for HoldThrough<'_, F> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            stop(&mut { this.body }, this.guard);
        }
    }
}

/// Runs `body` to its end, even if the lease ends. The guard reports a loss.
///
/// The body does not begin without the lock. If it continues without the lock, this is logged and counted once: otherwise it would
/// go unnoticed.
pub const fn hold_through<F: Future>(guard: &LockGuard, body: F) -> HoldThrough<'_, F> {
    let watched = Watched::new(guard.held());
    HoldThrough { body: Some(body), guard, watched, shows_guard: false, has_begun: false, is_lost: false }
}

impl<F> HoldThrough<'_, F> {
    /// Marks the body as one with access to its guard; see [`Hold::with_guard`].
    pub fn with_guard(mut self) -> Self {
        self.shows_guard = true;
        self
    }
}

impl<F: Future> Future for HoldThrough<'_, F> {
    type Output = Result<F::Output, LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if !*this.has_begun
            && let Err(error) = loss_timer::check_held(this.guard.held())
        {
            stop(&mut this.body, this.guard);
            return Poll::Ready(Err(error));
        }
        *this.has_begun = true;
        let Some(body) = this.body.as_pin_mut() else { return Poll::Pending };
        let mut frame = None;
        let inside = Frame::enter(&mut frame, || this.guard.held().frame(*this.shows_guard));
        let output = body.poll(cx);
        drop(inside);
        if !*this.is_lost && is_lost(this.watched, output.is_ready(), cx) {
            *this.is_lost = true;
            this.guard.held().acquisition().outlived();
        }
        output.map(Ok)
    }
}

/// Returns `true` if the lock is not held any more. For a finished body, no timer is set.
fn is_lost(watched: &mut Watched<'_, Held>, is_over: bool, cx: &mut Context<'_>) -> bool {
    if is_over { loss_timer::check_held(watched.held()).is_err() } else { watched.poll_lost(cx).is_ready() }
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
