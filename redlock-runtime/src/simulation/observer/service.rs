//! Checks that a waiter is served in time, in order, and soon after the lock is free.

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

/// Time after which a waiter for a permit has found all permits taken, and has no lasting entries.
const WAITED: Duration = Duration::from_millis(300);

impl Observer {
    /// Checks that no smaller token has waited in the queues of a majority for a while when `token` is served.
    ///
    /// If calls want several names, a third call may block the earlier one. Then only an earlier call that `token`
    /// excludes is a violation.
    pub(super) fn order(&self, call: &Call, token: OwnerToken) {
        // There is no promised order between permits and other modes.
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

    /// Checks that a call that does not wait gets a lock without rivals, even if another process retains it.
    pub(super) fn tried<T>(&self, waiter: &Waiter, outcome: Option<&Result<T, LockError>>) {
        let is_refused = matches!(outcome, Some(Err(LockError::Contended { .. })));
        if is_refused && !waiter.has_rivals && self.profile.is_calm() && !self.profile.lingers.is_empty() {
            self.broken(Promise::Given, format!("{waiter} does not get it, and nobody has it"));
        }
    }

    /// Checks that no wait times out before its end.
    pub(super) fn in_time<T>(&self, waiter: &Waiter, outcome: Option<&Result<T, LockError>>) {
        let (Wait::For(wait), Some(Err(LockError::TimedOut { .. }))) = (waiter.wait, outcome) else { return };
        // The clocks are wrong by up to 0.5 %.
        if self.network.now().since(waiter.since) < wait.mul_f64(0.99) {
            self.broken(Promise::Deadline, format!("{waiter} is told too early that its wait is over"));
        }
    }

    /// Checks that no call waits beyond its deadline, and that no call is overtaken for too long.
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

    /// Records tokens that have entries for permits before any call has entered with them.
    ///
    /// The placeholder of a broken lock is no such token: it remains until the holder has stopped or its lease has ended.
    pub(super) fn pending_permits(&self) {
        if self.profile.permits.is_empty() || self.profile.faults.crashes == 0 {
            return;
        }
        let now = self.network.now();
        for index in 0..2 {
            for token in self.network.live_shares(&key(index)) {
                let is_placeholder = self.network.was_placeholder(token);
                let mut records = self.records();
                if !is_placeholder && !records.entered_tokens.contains(&token) {
                    records.pending_permits.entry(token).or_insert(now..now).end = now;
                }
            }
        }
    }

    /// Checks that `key` is not free for longer than the profile allows while a call waits for it.
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

    /// Returns `true` if `key` is free and one of its waiters could acquire it.
    fn is_idle(&self, records: &Records, index: usize, now: Instant) -> bool {
        // A call for two keys waits for the holder of the other key, and later calls do not overtake it here.
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
        // A call that is served earlier may have a smaller limit.
        let room = self.waiters(records, index).filter_map(|waiter| waiter.permits).min();
        let kept = self.kept(records, index, now);
        // A call that has waited for a permit for a while and then died occupies no permit.
        let left = |token| {
            let waited =
                records.pending_permits.get(&token).map_or(Duration::ZERO, |alive| alive.end.since(alive.start));
            waited >= WAITED && !records.entered_tokens.contains(&token)
        };
        let has_room = room.is_none_or(|room| self.network.has_room(&key(index), &kept, left, room));
        has_room && self.network.can_serve(&[(key(index), share)], &clients, &kept)
    }

    /// Returns `true` if the other key that a waiter wants is held, or if too few servers could grant both keys.
    ///
    /// A holder of both keys that crashed may have lost one of them at some servers, and the other key at others.
    fn is_kept_elsewhere(&self, records: &Records, waiter: &Waiter, now: Instant) -> bool {
        let Some(also) = waiter.also else { return false };
        let keys = [waiter.key, also];
        let kept: Vec<_> = keys.iter().flat_map(|index| self.kept(records, *index, now)).collect();
        let keys = keys.map(|index| (key(index), self.would_share(records, index)));
        holders(records, also).any(|holder| holder.is_valid(now))
            || !self.network.can_serve(&keys, &[waiter.client], &kept)
    }

    /// Returns the waiters for a key that could acquire it.
    fn waiters<'r>(&self, records: &'r Records, index: usize) -> impl Iterator<Item = &'r Waiter> {
        let waits = |waiter: &Waiter| waiter.wait != Wait::None && self.network.is_well(waiter.client);
        records.waiters.iter().filter(move |waiter| waiter.key == index && waits(waiter))
    }

    /// Returns `true` if the waiters could share the key: all waiters and all holders are readers. A writer in a paused
    /// process is not a waiter here.
    fn would_share(&self, records: &Records, index: usize) -> bool {
        self.waiters(records, index).all(|waiter| waiter.is_shared) && holders(records, index).all(Holder::is_shared)
    }

    /// Returns the tokens that are in use at a key.
    fn kept(&self, records: &Records, index: usize, now: Instant) -> Vec<OwnerToken> {
        let windows = records.windows.iter().filter(|window| now < window.until.after(self.patient));
        let kept = holders(records, index).map(|holder| holder.token).chain(windows.map(|window| window.token));
        kept.chain(records.detached.iter().copied()).chain(self.stand_ins(&records.holders)).collect()
    }

    /// Describes the calls that still wait.
    pub(in crate::simulation) fn waiting(&self) -> String {
        let waiting: Vec<_> = self.records().waiters.iter().map(ToString::to_string).collect();
        waiting.join("; ")
    }
}

fn holders(records: &Records, index: usize) -> impl Iterator<Item = &Holder> {
    records.holders.iter().filter(move |holder| holder.key == index)
}
