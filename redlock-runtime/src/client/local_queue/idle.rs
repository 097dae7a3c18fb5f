//! Idle locks: held at the nodes, and without a call in this process, until the next call arrives.
//!
//! `protocol/candidate/idling` decides which locks may become idle, and `protocol/keeping` which are worth it. This
//! module changes the entries of their keys. Four operations never conflict:
//!
//! 1. *Keep*: the turn of a call ends, and no call waits. Under the mutex of the shard, the token agrees, the entry
//!    becomes idle, and the watchdog is scheduled.
//! 2. *Retake*: a call enters. Under the same mutex, the token is asked again, and the call gets the turn without a
//!    command. If the token does not agree, it is released, and the call begins with its own token.
//! 3. *Recall*: other processes want the lock. The token is informed first, and the entry is examined afterwards. A
//!    *keep* before that examination is seen by it, and a later *keep* asks a token that knows of the waiter.
//! 4. *End*: the idle time is over, there are too many idle locks, or the manager was shut down or has no handle. After
//!    a shutdown, or without a handle, no lock becomes idle. So after all shards have been examined, none is idle. The
//!    locks that another thread has begun to release are released as well, so that a shutdown also waits for their
//!    answers.
//!
//! A token stays in its entry until its releases are sent. A call that enters in between takes the entry over at once,
//! and sends the releases itself before it asks the nodes. A call that does not wait must not fail because of a lock
//! that no call uses.

#[cfg(test)]
mod tests;

use super::entry::Entry;
use super::idle_locks::Idling;
use super::local_owner::LocalOwner;
use super::{LocalQueue, SHARDS, Shard, lock};
use crate::client::acquisition::{Acquisition, Calls};
use crate::client::watchdog::schedule::Planned;
use crate::lock::{LockKey, OwnerToken};
use crate::protocol::candidate::Wanted;
use crate::protocol::keeping::has_paid;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Divisor for the hash within a shard, because the remainder has chosen the shard.
const PARTS: u64 = SHARDS as u64;

/// Time for which messages about a recalled token do not cause another release. Smaller: some needless commands.
/// Larger: a lost release is repaired later.
const PARKED: Duration = Duration::from_secs(1);

impl LocalQueue {
    /// Records that calls want their locks to become idle.
    pub(crate) fn linger(&self) {
        if !self.idling.is_wanted.load(Ordering::Relaxed) {
            self.idling.is_wanted.store(true, Ordering::Relaxed);
            // The process must be notified when other processes want an idle lock.
            self.shared.listen();
        }
    }

    /// Returns `true` if the locks of any call linger here, because those of other processes may do so, too.
    pub(crate) fn lingers(&self) -> bool {
        !self.shared.policy.linger.is_zero() || self.idling.is_wanted.load(Ordering::Relaxed)
    }

    /// Returns the numbers of locks that were kept, reused, recalled by other processes, and released unasked.
    pub(crate) fn idle_counters(&self) -> [u64; 4] {
        let Idling { kept, retaken, recalled, expired, .. } = &self.idling;
        [kept, retaken, recalled, expired].map(|counter| counter.load(Ordering::Relaxed))
    }

    /// Tries to leave the lock idle at the end of a call's turn, when no call waits. Returns `true` if it stays held.
    pub(super) fn keep(self: &Arc<Self>, acquisition: &Arc<Acquisition>) -> bool {
        let is_possible = self.idling.is_wanted.load(Ordering::Relaxed) && self.shared.policy.max_idle > 0;
        if !is_possible || !acquisition.lingers() {
            return false;
        }
        let (name, now) = (acquisition.key().name(), self.shared.clock.now());
        let hash = self.hash(name);
        let kept = self.part(hash).keep(self, acquisition, hash, now);
        let Some((until, calls)) = kept else { return false };
        drop(calls);
        self.schedule_check_within(until.since(now), now);
        if self.idling.count.load(Ordering::Relaxed) > self.shared.policy.max_idle {
            self.make_room();
        }
        true
    }

    /// Returns `true` if no lock may become idle any longer.
    fn is_ending(&self) -> bool {
        let has_ended = self.shared.is_closed() || self.idling.has_no_handle.load(Ordering::Acquire);
        has_ended && self.shared.rules.apply(Rule::HandlesReturnIdle)
    }

    /// Releases the idle lock whose time ends first in one shard, in another shard each time.
    ///
    /// The limit applies to all shards together. Keys are distributed randomly, and with a limit for each shard, some
    /// locks would be released while others have room. Choosing the first of one shard instead of all avoids a mutex
    /// that all calls would need.
    fn make_room(&self) {
        for _ in 0..self.shards.len() {
            let part = self.idling.next_part.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            let oldest = self.shards.get(part).and_then(|shard| lock(shard).end_oldest());
            if let Some(oldest) = oldest {
                return self.give_back(&[oldest]);
            }
        }
    }

    /// Gives an idle lock to an entering call: with the same token, if the call can use it unchanged. Otherwise, the
    /// call gets a new token, the `first`, and the returned token must be released before any node is asked.
    pub(super) fn take_idle(
        self: &Arc<Self>,
        shard: &mut Shard,
        first: impl FnOnce() -> Arc<Acquisition>,
        key: &LockKey,
        wanted: Wanted,
        now: Instant,
    ) -> Option<(LocalOwner, Option<Arc<Acquisition>>)> {
        let left = shard.entries.get(key.name())?;
        let (until, acquisition) = (left.idle_until(), Arc::clone(left.acquisition()));
        // The token decides if the call can use the idle lock unchanged.
        let is_retaken = until.is_some() && acquisition.retake(wanted, now);
        // The lock is not idle any longer: reused, wanted by other processes, or useless to the call.
        if let Some(until) = until {
            shard.idle.remove(key.shared_name(), until);
            if is_retaken {
                self.count_idle_end(&self.idling.retaken);
            } else if acquisition.is_contended() {
                self.recalled(shard, key.name(), now);
            } else {
                self.count_idle_end(&self.idling.expired);
            }
        }
        let entry = shard.entries.get_mut(key.name())?;
        if is_retaken {
            entry.take();
            return Some((LocalOwner::new(self, acquisition), None));
        }
        // The old token is released by the caller, before the new one asks any node.
        let own = first();
        entry.take_with(Arc::clone(&own));
        Some((LocalOwner::new(self, own), Some(acquisition)))
    }

    /// Records that a lock is not idle any longer, with a counter for the reason.
    fn count_idle_end(&self, counter: &AtomicU64) {
        self.idling.count.fetch_sub(1, Ordering::Relaxed);
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that the lock called `name` is not idle any longer, because other processes want it.
    fn recalled(&self, shard: &mut Shard, name: &str, now: Instant) {
        let retakes = shard.entries.get(name).map_or(0, Entry::retakes);
        if let Some(habit) = shard.idle.habit(self.hash(name) / PARTS, self.most_idle_in_part(), now) {
            habit.recalled(has_paid(retakes), now);
        }
        if let Some(until) = self.idling.recalled(retakes, now) {
            self.shared.hot_keys.presume_in_use(until);
        }
        self.count_idle_end(&self.idling.recalled);
    }

    /// Returns the number of idle locks in each shard if keys were distributed evenly.
    fn most_idle_in_part(&self) -> usize {
        self.shared.policy.max_idle.div_ceil(self.shards.len())
    }

    /// Handles the wish of another token `by` for the lock of `acquisition`. If the lock is idle, releases it and
    /// returns `true`.
    pub(crate) fn recall(&self, acquisition: &Arc<Acquisition>, by: OwnerToken) -> bool {
        // Most notifications are about locks that calls use, and find no idle lock.
        if self.idling.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let (name, now) = (acquisition.key().name(), self.shared.clock.now());
        let mut part = self.shard(name);
        let is_idle =
            part.entries.get(name).is_some_and(|entry| entry.is_of(acquisition) && entry.idle_until().is_some());
        if !is_idle || !(by.asks() || acquisition.is_contended()) {
            return false;
        }
        part.end(name);
        self.recalled(&mut part, name, now);
        drop(part);
        self.shared.kept_tokens.keep(*acquisition.token(), now.after(PARKED), now);
        self.release_ended(acquisition);
        true
    }

    /// Releases the lock called `name` if it is idle, because a call of this process wants to share it.
    pub(crate) fn end_idle(&self, name: &str) {
        if self.idling.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let ended = self.shard(name).end(name);
        self.give_back(ended.as_slice());
    }

    /// Records that the last handle of the manager was dropped, although some of its locks may still be held.
    pub(crate) fn on_last_handle_dropped(&self) {
        self.idling.has_no_handle.store(true, Ordering::Release);
        self.release_all_idle();
    }

    /// Releases all idle locks. When this returns, all their releases are sent, even those that another thread has
    /// begun.
    pub(super) fn release_all_idle(&self) {
        if self.idling.is_wanted.load(Ordering::Relaxed) && self.shared.rules.apply(Rule::HandlesReturnIdle) {
            for shard in &self.shards {
                let (ending, ended) = {
                    let mut shard = lock(shard);
                    let ending: Vec<_> = shard.ending().map(Arc::clone).collect();
                    (ending, std::iter::from_fn(|| shard.end_oldest()).collect::<Vec<_>>())
                };
                self.give_back(&ended);
                for acquisition in ending {
                    acquisition.release();
                }
            }
        }
    }

    /// Releases idle locks whose time has ended without a request from others.
    pub(super) fn give_back(&self, ended: &[Arc<Acquisition>]) {
        for acquisition in ended {
            self.count_idle_end(&self.idling.expired);
            self.release_ended(acquisition);
        }
    }

    /// Sends the releases of a token that was idle. Then removes its entry, unless a call has it by now.
    fn release_ended(&self, acquisition: &Arc<Acquisition>) {
        acquisition.release();
        let name = acquisition.key().name();
        let mut shard = self.shard(name);
        if shard.entries.get(name).is_some_and(|entry| entry.is_of(acquisition)) {
            shard.remove(name);
        }
    }
}

impl Shard {
    /// Leaves the lock of `acquisition` idle, if that is allowed and worth it. Returns the end of the idle time, and
    /// the calls to wake after every mutex is free.
    fn keep(
        &mut self,
        local: &LocalQueue,
        acquisition: &Arc<Acquisition>,
        hash: u64,
        now: Instant,
    ) -> Option<(Instant, Calls)> {
        let is_ours = |entry: &&mut Entry| entry.is_of(acquisition) && entry.is_alone();
        let entry = self.entries.get_mut(acquisition.key().name()).filter(is_ours)?;
        let habit = self.idle.habit(hash / PARTS, local.most_idle_in_part(), now)?;
        let is_worth_it = habit.released(now) && (has_paid(entry.retakes()) || !local.idling.is_paused(now));
        if !is_worth_it || local.is_ending() {
            return None;
        }
        // Before the token agrees: a recall informs the token first and then examines this counter, so it sees the new
        // value.
        local.idling.count.fetch_add(1, Ordering::Relaxed);
        let Some((until, calls)) = acquisition.keep(now) else {
            local.idling.count.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        local.idling.kept.fetch_add(1, Ordering::Relaxed);
        entry.leave_idle(until);
        self.idle.add(acquisition.key().shared_name(), until);
        self.schedule_check(acquisition.key().name(), Planned::at(until));
        Some((until, calls))
    }

    /// Prepares the end of an idle lock: its token must be released.
    fn end(&mut self, name: &str) -> Option<Arc<Acquisition>> {
        let entry = self.entries.get_mut(name)?;
        let until = entry.end()?;
        let acquisition = Arc::clone(entry.acquisition());
        self.idle.remove(acquisition.key().shared_name(), until);
        Some(acquisition)
    }

    /// Ends the idle lock whose time ends first.
    fn end_oldest(&mut self) -> Option<Arc<Acquisition>> {
        let (_, name) = self.idle.first()?;
        self.end(&name)
    }

    /// Returns the idle locks that are being released.
    fn ending(&self) -> impl Iterator<Item = &Arc<Acquisition>> {
        self.entries.values().filter(|entry| entry.is_ending()).map(Entry::acquisition)
    }

    /// Ends the idle locks whose time is over at `now`.
    pub(super) fn end_overdue(&mut self, now: Instant) -> Vec<Arc<Acquisition>> {
        let mut ended = Vec::new();
        while let Some((_, name)) = self.idle.first().filter(|(until, _)| *until <= now) {
            ended.extend(self.end(&name));
        }
        ended
    }
}
