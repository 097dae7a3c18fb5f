//! A place in the line of one key, as the call that waits there has it.

use super::LocalQueue;
use super::local_turn::LocalTurn;
use super::local_waiter::{Left, LineClosed, LocalWaiter};
use crate::client::acquisition::Acquisition;
use crate::lock::LockKey;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The place of a call. Dropped, it leaves the line, and what was handed to it meanwhile goes to the next.
#[derive(Debug)]
#[must_use = "the place is left when this is dropped"]
pub(crate) struct LocalWait {
    local: Arc<LocalQueue>,
    key: LockKey,
    place: u64,
    /// How many stood before it.
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

    /// How many calls stood before it when it came.
    pub(crate) const fn others(&self) -> usize {
        self.others
    }

    /// Takes the turn from a holder whose lease has run out, if this is the first place in line.
    pub(crate) fn supersede(&self) -> Option<LocalTurn> {
        // Before the shard, so that they are woken after it.
        let (is_over, _seen, _superseded);
        let mut shard = self.local.shard(self.key.name());
        let entry = shard.entries.get_mut(self.key.name())?;
        (is_over, _seen) = entry.leave_to_supersede(&self.waiter);
        if !is_over {
            return None;
        }
        let (manager, now) = (&self.local.shared, self.local.shared.clock.now());
        let acquisition = Arc::new(Acquisition::of_key(manager, &self.key, self.waiter.wanted.ttl, now));
        _superseded = entry.supersede(&acquisition);
        Some(LocalTurn::new(&self.local, acquisition))
    }
}

impl Future for LocalWait {
    type Output = Result<LocalTurn, LineClosed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let handed = ready!(self.waiter.poll_handed(cx));
        Poll::Ready(handed.map(|acquisition| LocalTurn::new(&self.local, acquisition)))
    }
}

impl Drop for LocalWait {
    fn drop(&mut self) {
        match self.waiter.leave() {
            Left::Waiting => {
                if let Some(entry) = self.local.shard(self.key.name()).entries.get_mut(self.key.name()) {
                    entry.leave(self.place, &self.waiter);
                }
            }
            // The turn goes to the next in line.
            Left::Handed(acquisition) => drop(LocalTurn::new(&self.local, acquisition)),
            Left::Nothing => {}
        }
    }
}
