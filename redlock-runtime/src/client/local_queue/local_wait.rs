//! Place in the local queue of one key, held by the waiting call.

use super::LocalQueue;
use super::local_owner::LocalOwner;
use super::local_waiter::{Cancelled, LineClosed, LocalWaiter};
use crate::client::acquisition::Acquisition;
use crate::lock::LockKey;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Place of a waiting call. On drop, it is left, and a turn that was handed over meanwhile goes to the next call.
#[derive(Debug)]
#[must_use = "the place is left when this is dropped"]
pub(crate) struct LocalWait {
    local: Arc<LocalQueue>,
    key: LockKey,
    place: u64,
    /// Number of calls that were ahead.
    others: usize,
    waiter: Arc<LocalWaiter>,
}

impl LocalWait {
    pub(super) fn new(
        local: &Arc<LocalQueue>,
        key: &LockKey,
        (place, others): (u64, usize),
        waiter: Arc<LocalWaiter>,
    ) -> Self {
        Self { local: Arc::clone(local), key: key.clone(), place, others, waiter }
    }

    /// Returns the number of calls that were ahead when this call joined.
    pub(crate) const fn others(&self) -> usize {
        self.others
    }

    /// Takes the turn from an owner whose lease has ended, if this is the first place in the queue.
    pub(crate) fn supersede(&self) -> Option<LocalOwner> {
        // Declared before the shard, so that the calls are woken after its mutex is free.
        let (is_over, _seen, _superseded);
        let mut shard = self.local.shard(self.key.name());
        let entry = shard.entries.get_mut(self.key.name())?;
        (is_over, _seen) = entry.dequeue_if_superseding(&self.waiter);
        if !is_over {
            return None;
        }
        let (manager, now) = (&self.local.shared, self.local.shared.clock.now());
        let acquisition = Arc::new(Acquisition::of_key(manager, &self.key, self.waiter.wanted.ttl, now));
        _superseded = entry.supersede(&acquisition);
        Some(LocalOwner::new(&self.local, acquisition))
    }
}

impl Future for LocalWait {
    type Output = Result<LocalOwner, LineClosed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let handed = ready!(self.waiter.poll_handed(cx));
        Poll::Ready(handed.map(|acquisition| LocalOwner::new(&self.local, acquisition)))
    }
}

impl Drop for LocalWait {
    fn drop(&mut self) {
        match self.waiter.leave() {
            Cancelled::Waiting => {
                if let Some(entry) = self.local.shard(self.key.name()).entries.get_mut(self.key.name()) {
                    entry.leave(self.place, &self.waiter);
                }
            }
            // The turn goes to the next waiting call.
            Cancelled::Handed(acquisition) => drop(LocalOwner::new(&self.local, acquisition)),
            Cancelled::Nothing => {}
        }
    }
}
