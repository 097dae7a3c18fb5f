//! Lets commands gather before they are written.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Runs a connection's driver one turn of the scheduler later than it was woken.
///
/// The first command to arrive wakes the driver, which would then write that command alone. Going to the back of the
/// queue once lets the tasks that are ready send theirs first, and one system call carries them all.
pub(super) struct Batching<F> {
    driver: Pin<Box<F>>,
    gathered: bool,
}

impl<F: Future<Output = ()>> Batching<F> {
    pub(super) fn new(driver: F) -> Self {
        Self { driver: Box::pin(driver), gathered: false }
    }
}

impl<F: Future<Output = ()>> Future for Batching<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.gathered {
            self.gathered = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.gathered = false;
        ready!(self.driver.as_mut().poll(cx));
        Poll::Ready(())
    }
}
