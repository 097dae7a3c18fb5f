//! Decides which unused locks are worth keeping idle, from the outcome of earlier idle locks.
//!
//! An idle lock saves its process a round trip for each call that reuses it. It costs every other process that wants it
//! one round trip. So a key is kept only if its calls come in quick succession, and not for a while after other
//! processes wanted it first ([`KeyUsage`]). A manager whose idle locks save too little in total keeps no new ones for a
//! while ([`LingerBackoff`]).

use crate::time::clock::Instant;
use std::time::Duration;

/// Largest distance of releases of a key that count as quick succession. Smaller: steadily used keys are never kept.
/// Larger: keys are kept whose next call comes after the idle time.
const LATELY: Duration = Duration::from_secs(2);
/// Number of releases in quick succession that make a key worth keeping. At 1: each key that is used once is kept
/// without benefit. Larger: a frequently used key is kept later.
const LEAST_TOUCHES: u32 = 2;
/// Factor on the required number of releases after each recall that did not pay. Smaller: a key that two processes use
/// in turns once a second is kept without benefit more often, since its block is over after a few releases. Larger: a
/// key that its process uses often is not kept for long after a few unlucky recalls.
const MORE_TOUCHES: u32 = 4;
/// Largest required number of releases: about a minute of a key that is used once a second. Larger: a key whose use has
/// changed is kept again later.
const MOST_TOUCHES: u32 = 64;
/// Number of reuses before a recall that pay for its round trip. Smaller: keys that several processes use in turns are
/// kept at the expense of all. Larger: keys are given up although keeping them pays.
const PAYS_FROM: u32 = 2;
/// Time for which a key is not kept after the first recall that did not pay; it doubles with each further one. Smaller:
/// a key that several processes use in turns costs more of them. Larger: one unlucky recall has a longer effect.
const SHORTEST_BLOCK: Duration = Duration::from_secs(2);
/// Longest such time, so that a key whose use has changed is kept again within about a minute.
const LONGEST_BLOCK: Duration = Duration::from_secs(64);

/// Number of recalls that are judged together. Fewer: chance decides. More: the judgement takes longer.
const RECALLS: u32 = 64;
/// Most saved round trips that one recall contributes. Smaller: steadily used keys do not make up for others that are
/// kept without benefit. Larger: one permanently used key hides that all others are.
const MOST_SAVED: u32 = 16;
/// Time for which no new lock is kept after recalls that did not pay. Smaller: the next sixty-four cost others more
/// often. Larger: a manager whose work has changed keeps nothing for longer.
const PAUSE: Duration = Duration::from_secs(10);

/// Returns `true` if the given number of reuses was worth the cost to other processes.
pub(crate) const fn has_paid(retakes: u32) -> bool {
    retakes >= PAYS_FROM
}

/// Recent use of one key in this process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyUsage {
    released_at: Option<Instant>,
    /// Number of releases that have followed each other quickly, including the last one.
    touches: u32,
    /// Number of consecutive recalls that did not pay.
    unpaid: u32,
    blocked_until: Option<Instant>,
}

impl KeyUsage {
    /// Records that a call no longer needs the lock. Returns `true` if the lock is worth keeping for the next call.
    pub(crate) fn released(&mut self, now: Instant) -> bool {
        let is_quick = self.released_at.is_some_and(|at| now.since(at) <= LATELY);
        self.touches = if is_quick { self.touches.saturating_add(1) } else { 1 };
        self.released_at = Some(now);
        let needed = LEAST_TOUCHES.saturating_mul(MORE_TOUCHES.saturating_pow(self.unpaid)).min(MOST_TOUCHES);
        self.touches >= needed && !self.is_blocked(now)
    }

    /// Records that others wanted the idle lock, and whether keeping it `had_paid`.
    pub(crate) fn recalled(&mut self, had_paid: bool, now: Instant) {
        let unpaid = self.unpaid;
        *self = Self::default();
        if !had_paid {
            let block = SHORTEST_BLOCK.saturating_mul(2_u32.saturating_pow(unpaid)).min(LONGEST_BLOCK);
            (self.unpaid, self.blocked_until) = (unpaid.saturating_add(1), Some(now.after(block)));
        }
    }

    /// Returns `true` if the key must not be kept for a while.
    fn is_blocked(&self, now: Instant) -> bool {
        self.blocked_until.is_some_and(|until| now < until)
    }
}

/// Number of keys with colliding hashes that are tracked separately. Fewer: keys that are used at the same time
/// displace each other and are never kept. More: each lookup takes longer.
const WAYS: usize = 4;

/// Usage table of a bounded number of keys, by a hash. A new key displaces the least recently used key, at the cost of some speed.
#[derive(Debug)]
pub(crate) struct UsageTable(Box<[[(u64, KeyUsage); WAYS]]>);

impl UsageTable {
    /// Creates a table for the given number of keys.
    pub(crate) fn with_key_count(keys: usize) -> Self {
        Self(std::iter::repeat_n(<[_; WAYS]>::default(), keys.div_ceil(WAYS)).collect())
    }

    /// Returns the habit of the key with this `hash`. Returns `None` if the key would displace a blocked one, which
    /// must not be forgotten.
    pub(crate) fn of(&mut self, hash: u64, now: Instant) -> Option<&mut KeyUsage> {
        let sets = u64::try_from(self.0.len()).ok().filter(|sets| *sets > 0)?;
        let set = self.0.get_mut(usize::try_from(hash % sets).ok()?)?;
        if let Some(known) = set.iter().position(|(owner, _)| *owner == hash) {
            return set.get_mut(known).map(|(_, habit)| habit);
        }
        let others = set.iter_mut().filter(|(_, habit)| !habit.is_blocked(now));
        let (owner, habit) = others.min_by_key(|(_, habit)| habit.released_at)?;
        (*owner, *habit) = (hash, KeyUsage::default());
        Some(habit)
    }
}

/// Circuit breaker that decides if keeping locks pays at all, for a manager whose keys other processes use as well.
///
/// It compares the saved round trips with the round trips of other processes, not the number of keys that paid. A few permanently
/// used keys may be worth the cost of many others.
#[derive(Debug, Default)]
pub(crate) struct LingerBackoff {
    /// Number of recalls since the last judgement.
    recalls: u32,
    /// Total number of reuses of those locks.
    saved: u32,
}

impl LingerBackoff {
    /// Records the recall of an idle lock that was reused `retakes` times. If keeping locks did not pay, returns the
    /// time until which no new lock is kept.
    pub(crate) fn recalled(&mut self, retakes: u32, now: Instant) -> Option<Instant> {
        (self.recalls, self.saved) = (self.recalls + 1, self.saved + retakes.min(MOST_SAVED));
        if self.recalls < RECALLS {
            return None;
        }
        let judged = std::mem::take(self);
        (judged.saved < RECALLS * PAYS_FROM).then(|| now.after(PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    #[test]
    fn key_lingers_if_calls_follow_each_other_quickly() {
        let mut habit = KeyUsage::default();
        let table = [(0, false), (2001, false), (4001, true), (4002, true), (6003, false), (6004, true)];
        for (millis, is_kept) in table {
            assert_eq!(habit.released(at(millis)), is_kept, "at {millis}");
        }
    }

    #[test]
    fn useless_linger_blocks_the_key_for_twice_as_long_each_time() {
        let (mut habit, mut now) = (KeyUsage::default(), 0);
        for (blocked_for, needed) in [(2, 8), (4, 32), (8, 64), (16, 64), (32, 64), (64, 64), (64, 64)] {
            habit.recalled(has_paid(PAYS_FROM - 1), at(now));
            let mut quick = |touches: u64, from| (0..touches).position(|touch| habit.released(at(now + from + touch)));
            assert_eq!(quick(100, blocked_for * 1000 - 100), None, "after {blocked_for} s");
            assert_eq!(quick(600, blocked_for * 1000 + 10_000), Some(needed - 1), "after {blocked_for} s");
            now += blocked_for * 1000 + 20_000;
        }
        habit.recalled(has_paid(PAYS_FROM), at(now));
        assert!(!habit.released(at(now)) && habit.released(at(now + 1)), "and everything is forgiven");
    }

    #[test]
    fn least_recently_used_key_is_evicted_unless_it_is_blocked() {
        let (mut habits, ways) = (UsageTable::with_key_count(2 * WAYS), u64::try_from(WAYS).unwrap());
        // Even hashes collide in one set. A key is kept with its second release, if it was not forgotten in between.
        let is_kept = |habits: &mut UsageTable, hash, now| habits.of(hash, at(now)).unwrap().released(at(now));
        for now in [0, 10] {
            let kept = (0..ways).map(|key| is_kept(&mut habits, 2 * key + 2, now + key)).collect::<Vec<_>>();
            assert_eq!(kept, [now == 10; WAYS], "as many as there are ways");
        }
        assert!(!is_kept(&mut habits, 100, 20) && !is_kept(&mut habits, 2, 21), "the first one was displaced");
        assert!(is_kept(&mut habits, 100, 22) && is_kept(&mut habits, 8, 23), "and the others were not");
        for key in [2, 6, 8, 100] {
            habits.of(key, at(30)).unwrap().recalled(false, at(30));
        }
        assert!(habits.of(200, at(31)).is_none() && habits.of(5, at(31)).is_some(), "all are blocked");
        assert!(habits.of(200, at(2031)).is_some());
        assert!(UsageTable::with_key_count(0).of(4, at(0)).is_none());
    }

    #[test]
    fn linger_backoff_starts_when_reclaimed_locks_have_saved_too_little() {
        // Number of reuses of the locks of three consecutive recalls, and the recall that opens the breaker.
        let table = [
            ([0, 0, 0], Some(64)),
            ([2, 2, 2], None),
            ([1, 2, 2], Some(64)),
            ([0, 0, 7], None),
            ([0, 0, 6], Some(64)),
            ([0, 0, 1000], None),
        ];
        for (retakes, opens_at) in table {
            let mut breaker = LingerBackoff::default();
            let opened = (1..=300).find(|recall| breaker.recalled(retakes[recall % 3], at(0)).is_some());
            assert_eq!(opened, opens_at, "{retakes:?}");
        }
        let mut breaker = LingerBackoff::default();
        let open = (0..200).filter_map(|_| breaker.recalled(0, at(7))).collect::<Vec<_>>();
        assert_eq!(open, [at(10_007); 3], "after a pause, it looks anew");
    }

    #[test]
    fn one_busy_key_does_not_prevent_the_linger_backoff() {
        let mut breaker = LingerBackoff::default();
        let opened =
            (1..=64).find(|recall| breaker.recalled(if *recall % 16 == 0 { u32::MAX } else { 0 }, at(0)).is_some());
        assert_eq!(opened, Some(64));
    }
}
