//! Wait of a call for a permit that another call of its process gives back.

use super::LocalQueue;
use super::local_owner::LocalOwner;
use super::local_waiter::{Cancelled, LocalWaiter};
use super::takers::Taker;
use crate::lock::LockKey;
use crate::protocol::candidate::Wanted;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Place of the waiting call. On drop, it is left, and a permit that was passed on to it goes to the next call.
#[derive(Debug)]
#[must_use = "the place is left when this is dropped"]
pub(crate) struct PermitWait {
    local: Arc<LocalQueue>,
    key: LockKey,
    place: u64,
    taker: Arc<Taker>,
}

impl LocalQueue {
    /// Adds a waiting call for a permit of `key`, whose limit is `permits` at a time.
    pub(crate) fn wait_for_permit(self: &Arc<Self>, key: &LockKey, wanted: Wanted, permits: u32) -> PermitWait {
        let taker = Arc::new(Taker { waiter: LocalWaiter::new(wanted), permits });
        let place = self.add_taker(key, &taker, None);
        PermitWait { local: Arc::clone(self), key: key.clone(), place, taker }
    }
}

impl PermitWait {
    /// Waits at the same place for another permit, if the permit that was passed on is useless.
    pub(crate) fn wait_again(&mut self) {
        let Taker { waiter, permits } = &*self.taker;
        self.taker = Arc::new(Taker { waiter: LocalWaiter::new(waiter.wanted), permits: *permits });
        self.place = self.local.add_taker(&self.key, &self.taker, Some(self.place));
    }
}

impl Future for PermitWait {
    type Output = LocalOwner;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LocalOwner> {
        match self.taker.waiter.poll_handed(cx) {
            Poll::Ready(Ok(permit)) => Poll::Ready(LocalOwner::new(&self.local, permit)),
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for PermitWait {
    fn drop(&mut self) {
        match self.taker.waiter.leave() {
            Cancelled::Waiting => self.local.remove_taker(&self.key, &self.taker, self.place),
            Cancelled::Handed(permit) => drop(LocalOwner::new(&self.local, permit)),
            Cancelled::Nothing => {}
        }
    }
}
