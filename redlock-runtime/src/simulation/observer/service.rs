//! Who waits is served: in time, in order, and soon after the lock is free.

use super::{Observer, SLACK, UNANSWERED};
use crate::lock::OwnerToken;
use crate::protocol::timing::LONGEST_SILENCE;
use crate::simulation::actor::key;
use crate::simulation::records::{Holder, Promise, Records, Waiter};
use crate::simulation::tree::{self, names};
use crate::simulation::workload::Call;
use crate::time::clock::Instant;
use crate::{LockError, Wait};
use std::time::Duration;

/// After this time, a call that waits for a permit has found all of them taken, and has no entries that last.
const WAITED: Duration = Duration::from_millis(300);

impl Observer {
    /// Whoever has stood in the queues of a majority for a while comes before `token` if its own is smaller. Where calls want
    /// several names, another one may be in the way of an earlier one only, unless both cannot have at once what they want.
    pub(super) fn order(&self, call: &Call, token: OwnerToken) {
        // Between permits and those that want the lock otherwise, no order is promised.
        let has_place = call.permits.is_none();
        if !self.profile.is_calm() || !has_place || self.records().served_tokens.contains(&token) {
            return;
        }
        self.records().served_tokens.push(token);
        let want_several = self.profile.sets > 0 || self.profile.tree > 0;
        let mut wanted = call.keys().flat_map(names);
        let earlier = wanted.find_map(|name| self.network.queued_before(&key(name), token, self.patient, want_several));
        if let Some(earlier) = earlier {
            let name = |token| self.network.trace.name(token);
            self.broken(Promise::Order, format!("{} is served before {}", name(token), name(earlier)));
        }
    }

    /// A call that does not wait is given a lock that nobody uses, idle or not.
    pub(super) fn tried<T>(&self, waiter: &Waiter, outcome: Option<&Result<T, LockError>>) {
        let is_refused = matches!(outcome, Some(Err(LockError::Contended { .. })));
        if is_refused && !waiter.has_rivals && self.profile.is_calm() && !self.profile.lingers.is_empty() {
            self.broken(Promise::Given, format!("{waiter} does not get it, and nobody has it"));
        }
    }

    /// Nobody is told that its wait is over before it is.
    pub(super) fn in_time<T>(&self, waiter: &Waiter, outcome: Option<&Result<T, LockError>>) {
        let (Wait::For(wait), Some(Err(LockError::TimedOut { .. }))) = (waiter.wait, outcome) else { return };
        // By clocks that are wrong by half a hundredth.
        if self.network.now().since(waiter.since) < wait.mul_f64(0.99) {
            self.broken(Promise::Deadline, format!("{waiter} is told too early that its wait is over"));
        }
    }

    pub(super) fn deadlines(&self) {
        let now = self.network.now();
        let is_late = |waiter: &&Waiter| {
            // A call that does not wait begins to count when there are connections. A pause before that delays all of it.
            let rest = if waiter.wait == Wait::None { LONGEST_SILENCE + UNANSWERED + SLACK } else { SLACK };
            let limit = waiter.deadline.map(|at| at.max(self.network.paused_until(waiter.client).after(rest)));
            limit.is_some_and(|limit| limit < now)
        };
        let late = self.records().waiters.iter().find(is_late).map(|waiter| format!("{waiter} is late"));
        if let Some(text) = late {
            self.broken(Promise::Deadline, text);
        }
        let starves = |waiter: &&Waiter| {
            self.profile.fair_within.is_some_and(|limit| Duration::from_millis(limit) < now.since(waiter.since))
        };
        let starving =
            self.records().waiters.iter().find(starves).map(|waiter| format!("{waiter} is always overtaken"));
        if let Some(text) = starving {
            self.broken(Promise::Fairness, text);
        }
    }

    /// Records whose tokens have entries for permits, as long as no call has entered by them.
    pub(super) fn pending_permits(&self) {
        if self.profile.permits.is_empty() || self.profile.faults.crashes == 0 {
            return;
        }
        let now = self.network.now();
        for index in 0..2 {
            for token in self.network.live_shares(&key(index)) {
                let mut records = self.records();
                if !records.entered_tokens.contains(&token) {
                    records.pending_permits.entry(token).or_insert(now..now).end = now;
                }
            }
        }
    }

    pub(super) fn progress(&self, key_index: usize) {
        let now = self.network.now();
        let mut records = self.records();
        if records.waiters.iter().all(|waiter| waiter.key != key_index) {
            records.idle_since[key_index] = None;
            return;
        }
        let is_idle = self.is_idle(&records, key_index, now);
        let since = &mut records.idle_since[key_index];
        *since = if is_idle { since.or(Some(now)) } else { None };
        let idle = since.map_or(Duration::ZERO, |since| now.since(since));
        records.longest_idle = records.longest_idle.max(idle);
        drop(records);
        if idle > Duration::from_millis(self.profile.bound) {
            self.broken(Promise::Progress, format!("{} is free for {idle:?} while somebody waits", key(key_index)));
        }
    }

    /// Whether `key` is free and one of those who wait for it could have it.
    fn is_idle(&self, records: &Records, index: usize, now: Instant) -> bool {
        // Who wants another key as well waits for whoever has that, and nobody who has come later overtakes it here.
        let is_kept_elsewhere = |waiter: &Waiter| waiter.key == index && self.is_kept_elsewhere(records, waiter, now);
        if tree::path(index).is_some() {
            return self.is_idle_in_tree(records, index, now);
        }
        if records.waiters.iter().any(is_kept_elsewhere) {
            return false;
        }
        let clients: Vec<_> = self.waiters(records, index).map(|waiter| waiter.client).collect();
        let mut valid = holders(records, index).filter(|holder| holder.is_valid(now));
        let share = self.would_share(records, index);
        if clients.is_empty() || valid.any(|_| !share) {
            return false;
        }
        // A call that is served before others may allow fewer than they do.
        let room = self.waiters(records, index).filter_map(|waiter| waiter.permits).min();
        let kept = self.kept(records, index, now);
        // Whoever has waited for a permit for a while, and died, takes none out of the pool.
        let left = |token| {
            let waited =
                records.pending_permits.get(&token).map_or(Duration::ZERO, |alive| alive.end.since(alive.start));
            waited >= WAITED && !records.entered_tokens.contains(&token)
        };
        let has_room = room.is_none_or(|room| self.network.has_room(&key(index), &kept, left, room));
        has_room && self.network.can_serve(&key(index), &clients, &kept, share)
    }

    /// Whether the other key that a waiter wants is somebody's, or could not be had.
    fn is_kept_elsewhere(&self, records: &Records, waiter: &Waiter, now: Instant) -> bool {
        let Some(also) = waiter.also else { return false };
        holders(records, also).any(|holder| holder.is_valid(now)) || {
            let (kept, share) = (self.kept(records, also, now), self.would_share(records, also));
            !self.network.can_serve(&key(also), &[waiter.client], &kept, share)
        }
    }

    /// Those who wait for a key and could take it.
    fn waiters<'r>(&self, records: &'r Records, index: usize) -> impl Iterator<Item = &'r Waiter> {
        let waits = |waiter: &Waiter| waiter.wait != Wait::None && self.network.is_well(waiter.client);
        records.waiters.iter().filter(move |waiter| waiter.key == index && waits(waiter))
    }

    /// Whether those who wait could share the key: readers that wait behind readers alone. A writer whose process stands still is none
    /// in between.
    fn would_share(&self, records: &Records, index: usize) -> bool {
        self.waiters(records, index).all(|waiter| waiter.is_shared) && holders(records, index).all(Holder::is_shared)
    }

    /// The tokens that somebody has in use at a key.
    fn kept(&self, records: &Records, index: usize, now: Instant) -> Vec<OwnerToken> {
        let windows = records.windows.iter().filter(|window| now < window.until.after(self.patient));
        let kept = holders(records, index).map(|holder| holder.token).chain(windows.map(|window| window.token));
        kept.chain(records.detached.iter().copied()).chain(self.stand_ins(&records.holders)).collect()
    }

    /// Those who still wait.
    pub(in crate::simulation) fn waiting(&self) -> String {
        let waiting: Vec<_> = self.records().waiters.iter().map(ToString::to_string).collect();
        waiting.join("; ")
    }
}

fn holders(records: &Records, index: usize) -> impl Iterator<Item = &Holder> {
    records.holders.iter().filter(move |holder| holder.key == index)
}
