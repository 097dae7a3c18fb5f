//! Idle locks: held for the nodes, and without a call in this process, until the next one comes.
//!
//! What may become idle is decided in `protocol/candidate/idling`, and what is worth it in `protocol/keeping`. Here is what
//! happens to the entry of the key, and why two of these never get into each other's way:
//!
//! 1. *Keep*: the turn of a call ends, and nobody waits. Under the mutex of the line, the token agrees, the entry becomes
//!    idle, and the watchdog will look at it in time.
//! 2. *Retake*: a call enters. Under the same mutex, the token is asked again, and the call has the turn; no node hears of
//!    it. A token that does not agree is given back, and the call begins with one of its own.
//! 3. *Recall*: others want the lock. The token is told first, and only then the entry is looked at: whoever keeps the token
//!    before that look is seen by it, and whoever keeps it later asks a token that knows.
//! 4. *End*: its time is over, there are too many, the manager is shut down or has no handle any more. After a shutdown, or
//!    without a handle, nothing becomes idle; so whatever is, when all parts of the lines have been looked at, is gone. What
//!    another thread has begun to give back is released as well, so that a shutdown waits for the answers to that, too.
//!
//! A token that is given back stays in its entry until its releases are sent. A call that enters in between takes the entry
//! over at once, and sees to the releases itself before it asks the nodes: a call that does not wait must not fail for a
//! lock that nobody uses.

#[cfg(test)]
mod tests;

use super::entry::Entry;
use super::idle_locks::Idling;
use super::local_turn::LocalTurn;
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

/// The part of the lines has been chosen by the rest.
const PARTS: u64 = SHARDS as u64;

/// What the nodes still say of a token that was recalled is no reason to release it once more, for so long. Smaller, some
/// needless commands; larger, a release that went astray is made good later.
const PARKED: Duration = Duration::from_secs(1);

impl LocalQueue {
    /// Calls want their locks to be idle after them, from now on.
    pub(crate) fn linger(&self) {
        if !self.idling.is_wanted.load(Ordering::Relaxed) {
            self.idling.is_wanted.store(true, Ordering::Relaxed);
            // Whoever wants an idle lock has to be heard.
            self.shared.listen();
        }
    }

    /// Whether the locks of any call linger here, so that those of other processes may do so, too.
    pub(crate) fn lingers(&self) -> bool {
        !self.shared.policy.linger.is_zero() || self.idling.is_wanted.load(Ordering::Relaxed)
    }

    /// How many locks were kept, taken over, recalled by others and given back unasked.
    pub(crate) fn idle_counters(&self) -> [u64; 4] {
        let Idling { kept, retaken, recalled, expired, .. } = &self.idling;
        [kept, retaken, recalled, expired].map(|counter| counter.load(Ordering::Relaxed))
    }

    /// The turn of a call with `acquisition` ends, and nobody waits in line. Whether the lock stays held without a call.
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
        self.look_within(until.since(now), now);
        if self.idling.count.load(Ordering::Relaxed) > self.shared.policy.max_idle {
            self.make_room();
        }
        true
    }

    /// Whether nothing becomes idle any more.
    fn is_ending(&self) -> bool {
        let has_ended = self.shared.is_closed() || self.idling.has_no_handle.load(Ordering::Acquire);
        has_ended && self.shared.rules.apply(Rule::HandlesReturnIdle)
    }

    /// Gives back the lock whose idle time ends first in some part of the lines, another part each time.
    ///
    /// The limit counts for all parts together: keys are spread by chance, and a limit for each part would give some back
    /// while there is room in others. That it is not the first of all parts saves a mutex that all calls would meet at.
    fn make_room(&self) {
        for _ in 0..self.shards.len() {
            let part = self.idling.next_part.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            let oldest = self.shards.get(part).and_then(|shard| lock(shard).end_oldest());
            if let Some(oldest) = oldest {
                return self.give_back(&[oldest]);
            }
        }
    }

    /// A call takes the turn of a lock that was left: with the same token, if it can have that as it is. Otherwise it goes
    /// on with a token of its own, the `first`, and what is returned has to be released before any node is asked.
    pub(super) fn take_left(
        self: &Arc<Self>,
        shard: &mut Shard,
        first: impl FnOnce() -> Arc<Acquisition>,
        key: &LockKey,
        wanted: Wanted,
        now: Instant,
    ) -> Option<(LocalTurn, Option<Arc<Acquisition>>)> {
        let left = shard.entries.get(key.name())?;
        let (until, acquisition) = (left.idle_until(), Arc::clone(left.acquisition()));
        let is_retaken = until.is_some() && acquisition.retake(wanted, now);
        if let Some(until) = until {
            shard.idle.remove(key.shared_name(), until);
            if is_retaken {
                self.not_idle(&self.idling.retaken);
            } else if acquisition.is_contended() {
                self.recalled(shard, key.name(), now);
            } else {
                self.not_idle(&self.idling.expired);
            }
        }
        let entry = shard.entries.get_mut(key.name())?;
        if is_retaken {
            entry.take();
            return Some((LocalTurn::new(self, acquisition), None));
        }
        let own = first();
        entry.take_with(Arc::clone(&own));
        Some((LocalTurn::new(self, own), Some(acquisition)))
    }

    /// A lock is idle no more, for a reason that is counted.
    fn not_idle(&self, counter: &AtomicU64) {
        self.idling.count.fetch_sub(1, Ordering::Relaxed);
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The lock called `name` is idle no more, because others want it.
    fn recalled(&self, shard: &mut Shard, name: &str, now: Instant) {
        let retakes = shard.entries.get(name).map_or(0, Entry::retakes);
        if let Some(habit) = shard.idle.habit(self.hash(name) / PARTS, self.most_idle_in_part(), now) {
            habit.recalled(has_paid(retakes), now);
        }
        if let Some(until) = self.idling.recalled(retakes, now) {
            self.shared.hot_keys.presume_in_use(until);
        }
        self.not_idle(&self.idling.recalled);
    }

    /// How many locks may be idle in each part of the lines, were keys spread evenly.
    fn most_idle_in_part(&self) -> usize {
        self.shared.policy.max_idle.div_ceil(self.shards.len())
    }

    /// The lock of `acquisition` is wanted `by` another token. Whether it was idle; then it is given back.
    pub(crate) fn recall(&self, acquisition: &Arc<Acquisition>, by: OwnerToken) -> bool {
        // Most notices are about locks that calls have, and find nothing idle.
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

    /// A call of this process wants to share the lock called `name` with others: it is given back, if it is idle.
    pub(crate) fn end_idle(&self, name: &str) {
        if self.idling.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let ended = self.shard(name).end(name);
        self.give_back(ended.as_slice());
    }

    /// Nobody can call the manager any more, although some of its locks may still be held.
    pub(crate) fn without_handle(&self) {
        self.idling.has_no_handle.store(true, Ordering::Release);
        self.give_back_all();
    }

    /// Gives back all that is idle. When this returns, all releases of such locks are sent, whoever has begun with them.
    pub(super) fn give_back_all(&self) {
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

    /// Releases the locks whose idle time has come to its end, for which nobody has asked.
    pub(super) fn give_back(&self, ended: &[Arc<Acquisition>]) {
        for acquisition in ended {
            self.not_idle(&self.idling.expired);
            self.release_ended(acquisition);
        }
    }

    /// Sends the releases of a token that is not idle any more, then its entry goes, unless a call has it by now.
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
    /// Leaves the lock of `acquisition` without a call, if it may be and is worth it. Until when; and those who are to be
    /// woken when no mutex is held any more.
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
        // Before the token agrees: whoever tells it later of others, and then looks whether anything is idle, sees this.
        local.idling.count.fetch_add(1, Ordering::Relaxed);
        let Some((until, calls)) = acquisition.keep(now) else {
            local.idling.count.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        local.idling.kept.fetch_add(1, Ordering::Relaxed);
        entry.leave_idle(until);
        self.idle.add(acquisition.key().shared_name(), until);
        self.look_by(acquisition.key().name(), Planned::at(until));
        Some((until, calls))
    }

    /// The entry of an idle lock is about to end: its token is to be released.
    fn end(&mut self, name: &str) -> Option<Arc<Acquisition>> {
        let entry = self.entries.get_mut(name)?;
        let until = entry.end()?;
        let acquisition = Arc::clone(entry.acquisition());
        self.idle.remove(acquisition.key().shared_name(), until);
        Some(acquisition)
    }

    /// Ends the entry whose idle time ends first.
    fn end_oldest(&mut self) -> Option<Arc<Acquisition>> {
        let (_, name) = self.idle.first()?;
        self.end(&name)
    }

    /// The locks that are being given back.
    fn ending(&self) -> impl Iterator<Item = &Arc<Acquisition>> {
        self.entries.values().filter(|entry| entry.is_ending()).map(Entry::acquisition)
    }

    /// Ends the idle entries whose time is over at `now`.
    pub(super) fn end_overdue(&mut self, now: Instant) -> Vec<Arc<Acquisition>> {
        let mut ended = Vec::new();
        while let Some((_, name)) = self.idle.first().filter(|(until, _)| *until <= now) {
            ended.extend(self.end(&name));
        }
        ended
    }
}
