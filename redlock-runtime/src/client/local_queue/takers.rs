//! The calls of one process that wait for permits of a key, in the order in which they came.
//!
//! Each of them stands in the turnstile as well, or in the line before it. A permit that is given back here goes to the first
//! of them that is there, as long as `protocol/candidate/permits` allows it, and no node hears of it: that call leaves the turnstile
//! then. When the first may not have it, nobody has it before that one, and the nodes are told.

use super::local_turn::LocalTurn;
use super::local_waiter::{Left, LocalWaiter};
use super::{LocalQueue, Shard, shrink};
use crate::client::acquisition::{Acquisition, Calls};
use crate::lock::LockKey;
use crate::protocol::candidate::{Counted, Wanted};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Those who wait for permits of one key, by their places.
#[derive(Default)]
pub(super) struct Takers {
    all: BTreeMap<u64, Arc<Taker>>,
    next_place: u64,
}

/// A call that waits for a permit, as the others see it.
#[derive(Debug)]
struct Taker {
    waiter: LocalWaiter,
    /// How many may have one at a time, as this call applies it.
    permits: u32,
}

/// The place of a call. Dropped, it is left, and a permit that was passed on to it goes to the next.
#[derive(Debug)]
#[must_use = "the place is left when this is dropped"]
pub(crate) struct PermitWait {
    local: Arc<LocalQueue>,
    key: LockKey,
    place: u64,
    taker: Arc<Taker>,
}

impl Takers {
    /// Takes the first of them out of the line, if the permit may be passed on to it. Those who rely on the permit are to be woken
    /// when no mutex is held any more.
    fn next(&mut self, permit: &Acquisition, counted: Counted) -> Option<(Arc<Taker>, Calls)> {
        let first = self.all.first_entry()?;
        let calls = permit.pass_permit(first.get().waiter.wanted, first.get().permits, counted)?;
        Some((first.remove(), calls))
    }
}

impl LocalQueue {
    /// Takes a place among those who wait for permits of `key`, of which so many may have one at a time.
    pub(crate) fn wait_for_permit(self: &Arc<Self>, key: &LockKey, wanted: Wanted, permits: u32) -> PermitWait {
        let taker = Arc::new(Taker { waiter: LocalWaiter::new(wanted), permits });
        let mut shard = self.shard(key.name());
        let takers = shard.takers.entry(key.shared_name()).or_default();
        let place = takers.next_place;
        takers.next_place += 1;
        takers.all.insert(place, Arc::clone(&taker));
        drop(shard);
        PermitWait { local: Arc::clone(self), key: key.clone(), place, taker }
    }

    /// The turn of a call with `permit` has ended. Whether another one has the permit now.
    pub(super) fn passes_permit_on(&self, permit: &Arc<Acquisition>) -> bool {
        let name = permit.key().name();
        if self.shared.is_closed() || !self.shard(name).takers.contains_key(name) {
            return false;
        }
        // Before the line of the key: no two parts of the lines are looked at together.
        let turnstile = self.acquisition(permit.key().turnstile().name());
        let Some(counted) = turnstile.and_then(|turnstile| turnstile.counted()) else { return false };
        loop {
            let mut shard = self.shard(name);
            let next = shard.takers.get_mut(name).and_then(|takers| takers.next(permit, counted));
            shard.forget_takers(name);
            drop(shard);
            let Some((taker, calls)) = next else { return false };
            let is_handed = taker.waiter.hand(permit);
            // What is told of this turn is none of the next one's business.
            drop(calls);
            if is_handed {
                return true;
            }
        }
    }
}

impl Shard {
    /// Nothing is known of those who wait for permits of the key called `name` when nobody does.
    fn forget_takers(&mut self, name: &str) {
        if self.takers.get(name).is_some_and(|takers| takers.all.is_empty()) {
            self.takers.remove(name);
            shrink(&mut self.takers);
        }
    }
}

impl Future for PermitWait {
    type Output = LocalTurn;

    /// Never ready when the manager was shut down: the call hears of that where it asks the nodes.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LocalTurn> {
        match self.taker.waiter.poll_handed(cx) {
            Poll::Ready(Ok(permit)) => Poll::Ready(LocalTurn::new(&self.local, permit)),
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for PermitWait {
    fn drop(&mut self) {
        match self.taker.waiter.leave() {
            Left::Waiting => {
                let _left;
                let mut shard = self.local.shard(self.key.name());
                if let Some(takers) = shard.takers.get_mut(self.key.name())
                    && takers.all.get(&self.place).is_some_and(|other| Arc::ptr_eq(other, &self.taker))
                {
                    _left = takers.all.remove(&self.place);
                    shard.forget_takers(self.key.name());
                }
            }
            Left::Handed(permit) => drop(LocalTurn::new(&self.local, permit)),
            Left::Nothing => {}
        }
    }
}
