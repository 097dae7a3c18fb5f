//! Futures that are shown the lock of a guard: as its body, or in a task of their own.

use crate::client::enclosing::Frame;
use crate::lock::LockKey;
use pin_project_lite::pin_project;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tracing::Span;

pin_project! {
    /// A future in which calls find the lock of a guard.
    pub(super) struct Scoped<F> {
        // Here while the future is not polled.
        frame: Option<Frame>,
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Scoped<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // Inside of the span of the call, as a body is dropped.
            let _span = this.frame.as_ref().and_then(|frame| frame.tenure.span()).map(|span| Span::clone(&span).entered());
            this.future.set(None);
        }
    }
}

impl<F> Scoped<F> {
    pub(super) const fn new(frame: Frame, future: F) -> Self {
        Self { frame: Some(frame), future: Some(future) }
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

/// The lock of a guard, for a task that works for the holder. Made by [`LockGuard::inherit`](crate::LockGuard::inherit).
///
/// It does not keep the lock, which ends with the guard. It keeps the connections of the manager, like a guard. In the scope of a lock that
/// has ended, a [reentrant](crate::LockRequest::reentrant) call fails with [`LockError::Lost`](crate::LockError::Lost) and the cause.
///
/// **The task is not stopped, and is not notified, when the lock is lost.** Abort the task together with the body: spawn it in a
/// `tokio::task::JoinSet` that the body owns. A detached task continues beside the next holder.
#[derive(Clone)]
#[must_use = "calls see the lock in a `scope` of this, and nowhere else"]
pub struct Inherited(Frame);

impl Inherited {
    pub(super) const fn new(frame: Frame) -> Self {
        Self(frame)
    }

    /// What is locked.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.0.tenure.key()
    }

    /// Runs `future`. Calls inside find the lock as in a body of the guard.
    ///
    /// The future is not stopped when the lock is lost. It does not inherit a manager of [`LockManager::scope`](crate::LockManager::scope).
    pub fn scope<F: Future>(self, future: F) -> impl Future<Output = F::Output> + use<F> {
        Scoped::new(self.0, future)
    }
}

impl fmt::Debug for Inherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inherited").field("key", self.key()).field("remaining", &self.0.tenure.remaining()).finish()
    }
}
