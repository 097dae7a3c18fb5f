//! Complete call: acquires the lock, and runs the body while the lock is held.

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
    /// Future of [`locked`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Locked<F, R> {
        // Declared before the lease: fields drop in this order, and the body must end before the lock does.
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

/// Held lock of a running body.
struct Holding {
    timer: LossTimer,
    /// Span in which the body is dropped. It is left after that.
    span: Option<Arc<Span>>,
    guard: LockGuard,
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.timer.forget(self.guard.held());
        self.span.as_deref().into_iter().for_each(spans::leave);
    }
}

/// Acquires the lock, then runs `body` while the lock is provably held. `failed` converts an error into the output.
///
/// `failed` runs while the body and the guard still exist. Both are dropped right after, in this order.
///
/// The caller has one await instead of two, and little code depends on the type of the body. Both are compiled again for every
/// annotated function.
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
            // The caller then drops the body, and the guard after it.
            Poll::Pending => this.lease.poll_lost(cx).map(this.failed),
        }
    }
}

impl Lease {
    /// Is ready when the body may run, or with the error that stops it.
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

    /// Enters the body until the result is dropped. The body does not see its guard.
    ///
    /// The frame is created at each poll. Stored in the future, it would enlarge the future of every annotated function.
    fn enter<'f>(&self, home: &'f mut Option<Frame>) -> Option<Inside<'f>> {
        match self {
            Self::Held(Holding { guard, .. }) => Some(Frame::enter(home, || guard.held().frame(false))),
            Self::Acquiring(_) => None,
        }
    }

    /// Enters the span of the call on this thread, until the lease is dropped.
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
