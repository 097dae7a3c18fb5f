//! Futures in which calls find the lock of a guard: in its body, or in a spawned task.

use crate::client::enclosing::{BodyHold, Frame};
use crate::error::LockError;
use crate::guard::loss_timer::{self, LossTimer};
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tracing::Span;

pin_project! {
    /// Future in which calls find the lock of a guard.
    pub(super) struct Scoped<F> {
        // `None` only while the future is polled.
        frame: Option<Frame>,
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Scoped<F> {
        fn drop(this: Pin<&mut Self>) {
            this.stop();
        }
    }
}

impl<F> Scoped<F> {
    pub(super) const fn new(frame: Frame, future: F) -> Self {
        Self { frame: Some(frame), future: Some(future) }
    }

    /// Drops the future inside the span of its call, like a body.
    fn stop(self: Pin<&mut Self>) {
        let mut this = self.project();
        let _span = this.frame.as_ref().and_then(|frame| frame.tenure.span()).map(|span| Span::clone(&span).entered());
        this.future.set(None);
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let inside = this.frame.take().map(|frame| Frame::enter(this.frame, || frame));
        let polled = this.future.as_pin_mut().map_or(Poll::Pending, |future| future.poll(cx));
        drop(inside);
        polled
    }
}

pin_project! {
    /// Future in which calls find an inherited lock. It is dropped when the lock is lost, or when the guard of the parent has
    /// ended.
    pub(crate) struct InheritedScope<F> {
        #[pin]
        scoped: Scoped<F>,
        tenure: BodyHold,
        timer: LossTimer,
    }

    impl<F> PinnedDrop for InheritedScope<F> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            this.timer.forget(this.tenure);
        }
    }
}

impl<F> InheritedScope<F> {
    pub(crate) fn new(tenure: BodyHold, future: F) -> Self {
        let scoped = Scoped::new(Frame::inherited(tenure.clone()), future);
        Self { scoped, tenure, timer: LossTimer::new() }
    }
}

impl<F: Future> Future for InheritedScope<F> {
    type Output = Result<F::Output, LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        // The lease may have ended since the last poll, before its timer or a wake-up could stop the future.
        if let Err(error) = loss_timer::check_held(this.tenure) {
            this.scoped.stop();
            return Poll::Ready(Err(error));
        }
        if let Poll::Ready(output) = this.scoped.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        let error = ready!(this.timer.poll_lost(this.tenure, cx));
        this.scoped.stop();
        Poll::Ready(Err(error))
    }
}
