//! How a permit passes on from call to call inside the process.

use super::takers::Taker;
use super::{LocalQueue, Shard, shrink};
use crate::client::acquisition::{Acquisition, Calls};
use crate::lock::LockKey;
use std::sync::Arc;

impl LocalQueue {
    /// Adds `taker` at this place, or behind all others. Returns where it stands.
    pub(super) fn add_taker(&self, key: &LockKey, taker: &Arc<Taker>, place: Option<u64>) -> u64 {
        let mut shard = self.shard(key.name());
        // Never the same twice, since one may come back to its place.
        let place = place.unwrap_or(shard.next_taker);
        shard.next_taker = shard.next_taker.max(place + 1);
        shard.takers.entry(key.shared_name()).or_default().all.insert(place, Arc::clone(taker));
        place
    }

    /// The call behind `taker`, which stood at this place, waits no longer.
    pub(super) fn remove_taker(&self, key: &LockKey, taker: &Arc<Taker>, place: u64) {
        // Dropped behind the shard.
        let _left;
        let mut shard = self.shard(key.name());
        if let Some(takers) = shard.takers.get_mut(key.name())
            && takers.all.get(&place).is_some_and(|other| Arc::ptr_eq(other, taker))
        {
            _left = takers.all.remove(&place);
            shard.forget_takers(key.name());
        }
    }

    /// The turn of a call with `permit` has ended. Whether another one has the permit now.
    pub(super) fn passes_permit_on(&self, permit: &Arc<Acquisition>) -> bool {
        let name = permit.key().name();
        if self.shared.is_closed() || !self.shard(name).takers.contains_key(name) {
            return false;
        }
        // Before the line of the key: no two parts of the lines are looked at together.
        let Some(turnstile) = self.acquisition(permit.key().turnstile().name()) else { return false };
        permit.take_in_extensions();
        while let Some((taker, calls)) = self.next_taker(permit, &turnstile) {
            let is_handed = taker.waiter.hand(permit);
            // What is told of this turn is none of the next one's business.
            drop(calls);
            if is_handed {
                return true;
            }
        }
        false
    }

    /// The first in line, if the permit was passed on to it by what is known in this `turnstile`.
    fn next_taker(&self, permit: &Acquisition, turnstile: &Acquisition) -> Option<(Arc<Taker>, Calls)> {
        let name = permit.key().name();
        let mut shard = self.shard(name);
        let takers = shard.takers.get_mut(name)?;
        let next = turnstile.while_counted(|counted| takers.next(permit, counted));
        shard.forget_takers(name);
        next
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
