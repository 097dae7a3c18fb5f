//! The whole of an ordinary call: acquire, then run the body while the lock is held.

use super::Acquire;
use crate::client::enclosing::{Frame, Inside};
use crate::guard::loss_timer::{self, LossTimer};
use crate::observe::spans;
use crate::{LockError, LockGuard};
use pin_project_lite::pin_project;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tracing::Span;

pin_project! {
    /// The future of [`locked`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Locked<F, R> {
        // Before the lease: fields drop in this order, and the body must be gone before the lock is.
        #[pin]
        body: F,
        lease: Lease,
        failed: fn(LockError) -> R,
    }

    impl<F, R> PinnedDrop for Locked<F, R> {
        fn drop(this: Pin<&mut Self>) {
            // The body is dropped next, and then the lease, which leaves the span.
            this.project().lease.enter_span();
        }
    }
}

enum Lease {
    Acquiring(Acquire),
    Held(Holding),
}

/// A lock that is held, and its body is run.
struct Holding {
    timer: LossTimer,
    /// The span in which the body is dropped, and which is left after that.
    span: Option<Arc<Span>>,
    guard: LockGuard,
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.timer.forget(self.guard.held());
        self.span.as_deref().into_iter().for_each(spans::leave);
    }
}

/// Acquires the lock, then runs `body` as long as it is provably held. An error becomes the output by way of `failed`.
///
/// `failed` makes the output while body and guard still are there; both are dropped right after, in this order.
///
/// One await in the caller instead of two, and as little code as possible that depends on the body's type: both are
/// compiled anew for every annotated function.
pub fn locked<R, F: Future<Output = R>>(acquire: Acquire, body: F, failed: fn(LockError) -> R) -> Locked<F, R> {
    Locked { body, lease: Lease::Acquiring(acquire), failed }
}

impl<R, F: Future<Output = R>> Future for Locked<F, R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let this = self.project();
        if let Err(error) = ready!(this.lease.poll_held(cx)) {
            return Poll::Ready((this.failed)(error));
        }
        let mut frame = None;
        let inside = this.lease.enter(&mut frame);
        let polled = this.body.poll(cx);
        drop(inside);
        match polled {
            Poll::Ready(output) => Poll::Ready(output),
            // After this, the caller drops the body, and the guard after it.
            Poll::Pending => this.lease.poll_lost(cx).map(this.failed),
        }
    }
}

impl Lease {
    /// Whether the body may go on.
    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LockError>> {
        if let Self::Acquiring(acquire) = self {
            let guard = ready!(acquire.as_mut().poll(cx))?;
            *self = Self::Held(Holding { timer: LossTimer::new(), span: None, guard });
        }
        match self {
            Self::Held(Holding { guard, .. }) => Poll::Ready(loss_timer::check_held(guard.held())),
            Self::Acquiring(_) => Poll::Pending,
        }
    }

    /// The body is polled until what is returned is dropped. It does not see its guard.
    ///
    /// The frame is made at each poll, since it would make the future of every annotated function larger.
    fn enter<'f>(&self, home: &'f mut Option<Frame>) -> Option<Inside<'f>> {
        match self {
            Self::Held(Holding { guard, .. }) => Some(Frame::enter(home, || guard.held().frame(false))),
            Self::Acquiring(_) => None,
        }
    }

    /// What follows on this thread is inside of the span of the call, until the lease is dropped.
    fn enter_span(&mut self) {
        if let Self::Held(Holding { guard, span, .. }) = self {
            *span = guard.held().span();
            span.as_deref().into_iter().for_each(spans::enter);
        }
    }

    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<LockError> {
        match self {
            Self::Held(Holding { guard, timer, .. }) => timer.poll_lost(guard.held(), cx),
            Self::Acquiring(_) => Poll::Pending,
        }
    }
}

impl<F, R> fmt::Debug for Locked<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").finish_non_exhaustive()
    }
}
