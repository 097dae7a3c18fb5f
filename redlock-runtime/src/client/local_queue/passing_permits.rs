//! Transfer of a permit from call to call inside the process.

use super::takers::Taker;
use super::{LocalQueue, Shard, shrink};
use crate::client::acquisition::{Acquisition, Calls};
use crate::lock::LockKey;
use std::sync::Arc;

impl LocalQueue {
    /// Adds `taker` at this place, or at the end. Returns its place.
    pub(super) fn add_taker(&self, key: &LockKey, taker: &Arc<Taker>, place: Option<u64>) -> u64 {
        let mut shard = self.shard(key.name());
        // Places are unique, because a call may return to its place.
        let place = place.unwrap_or(shard.next_taker);
        shard.next_taker = shard.next_taker.max(place + 1);
        shard.takers.entry(key.shared_name()).or_default().all.insert(place, Arc::clone(taker));
        place
    }

    /// Removes the waiting call behind `taker` from its place.
    pub(super) fn remove_taker(&self, key: &LockKey, taker: &Arc<Taker>, place: u64) {
        // Dropped after the shard's mutex is free.
        let _left;
        let mut shard = self.shard(key.name());
        if let Some(takers) = shard.takers.get_mut(key.name())
            && takers.all.get(&place).is_some_and(|other| Arc::ptr_eq(other, taker))
        {
            _left = takers.all.remove(&place);
            shard.forget_takers(key.name());
        }
    }

    /// Tries to pass `permit` on at the end of a call's turn. Returns `true` if another call has the permit now.
    pub(super) fn pass_permit_on(&self, permit: &Arc<Acquisition>) -> bool {
        let name = permit.key().name();
        if self.shared.is_closed() || !self.shard(name).takers.contains_key(name) {
            return false;
        }
        // Before the queue of the key: two shards are never locked together.
        let Some(admission) = self.acquisition(permit.key().admission().name()) else { return false };
        permit.process_extension_replies();
        while let Some((taker, calls)) = self.next_taker(permit, &admission) {
            let is_handed = taker.waiter.hand(permit);
            // Events of this turn do not concern the next one.
            drop(calls);
            if is_handed {
                return true;
            }
        }
        false
    }

    /// Returns the first waiting call, if the permit was passed to it with the counts that are known in this
    /// `admission`.
    fn next_taker(&self, permit: &Acquisition, admission: &Acquisition) -> Option<(Arc<Taker>, Calls)> {
        let name = permit.key().name();
        let mut shard = self.shard(name);
        let takers = shard.takers.get_mut(name)?;
        let next = admission.with_counted_holders(|counted| takers.next(permit, counted));
        shard.forget_takers(name);
        next
    }
}

impl Shard {
    /// Removes the list of waiting calls for permits of the key called `name` if it is empty.
    fn forget_takers(&mut self, name: &str) {
        if self.takers.get(name).is_some_and(|takers| takers.all.is_empty()) {
            self.takers.remove(name);
            shrink(&mut self.takers);
        }
    }
}
