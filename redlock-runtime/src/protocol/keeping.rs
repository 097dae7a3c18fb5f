//! Which locks are worth keeping when nobody here needs them any more: what became of those that were kept before.
//!
//! An idle lock saves its process a round trip for each call that takes it over, and costs every other process one that
//! has to ask for it. So a key is kept only where calls come in quick succession, and not again for a while where others
//! came first ([`Habit`]). A manager that saves too little by all its idle locks keeps no new ones for a while ([`Breaker`]).

use crate::time::clock::Instant;
use std::time::Duration;

/// Releases of a key that are no further apart count as quick succession. Smaller, keys that are used steadily are never
/// kept; larger, keys are kept whose next call comes when the idle time is over.
const LATELY: Duration = Duration::from_secs(2);
/// So many releases in quick succession make a key worth keeping. At 1, each key that is used once is kept in vain; larger,
/// a key that is used often is kept later.
const LEAST_TOUCHES: u32 = 2;
/// So many times as many are asked for after each recall that did not pay. Smaller, a key that is used once in a second by
/// two processes in turns is kept in vain more often, since the times for which it is not kept are over after a few
/// releases; larger, a key that its process uses often is not kept for long after a few unlucky recalls.
const MORE_TOUCHES: u32 = 4;
/// The most that are asked for: about a minute of a key that is used once in a second. Larger, a key whose use has changed is
/// kept again later.
const MOST_TOUCHES: u32 = 64;
/// A lock that was taken over so often before others wanted it has paid for the round trip that it cost them. Smaller, keys
/// that several processes use in turns are kept at the expense of all; larger, keys are given up that are worth it.
const PAYS_FROM: u32 = 2;
/// For how long a key is not kept after the first recall that did not pay; twice as long after each that follows. Smaller,
/// a key that several processes use in turns costs more of them; larger, one unlucky recall is regretted for longer.
const SHORTEST_BLOCK: Duration = Duration::from_secs(2);
/// The longest, so that a key whose use has changed is kept again within about a minute.
const LONGEST_BLOCK: Duration = Duration::from_secs(64);

/// So many recalls are judged together. Fewer, and chance decides; more, and it takes longer to find out.
const RECALLS: u32 = 64;
/// No recall counts for more round trips saved than this. Smaller, keys that are used steadily do not make up for others that
/// are kept in vain; larger, one key that is used all the time hides that all others are.
const MOST_SAVED: u32 = 16;
/// For how long nothing new is kept when they did not pay. Smaller, the next sixty-four cost others more often;
/// larger, a manager whose work has changed keeps nothing for longer.
const PAUSE: Duration = Duration::from_secs(10);

/// Whether a lock that was taken over so often was worth what keeping it costs others.
pub(crate) const fn has_paid(retakes: u32) -> bool {
    retakes >= PAYS_FROM
}

/// How one key is used here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habit {
    released_at: Option<Instant>,
    /// How many releases have followed each other quickly, the last one included.
    touches: u32,
    /// How many recalls in a row did not pay.
    unpaid: u32,
    blocked_until: Option<Instant>,
}

impl Habit {
    /// A call has no use for the lock any more. Whether it is worth keeping for the next one.
    pub(crate) fn released(&mut self, now: Instant) -> bool {
        let is_quick = self.released_at.is_some_and(|at| now.since(at) <= LATELY);
        self.touches = if is_quick { self.touches.saturating_add(1) } else { 1 };
        self.released_at = Some(now);
        let needed = LEAST_TOUCHES.saturating_mul(MORE_TOUCHES.saturating_pow(self.unpaid)).min(MOST_TOUCHES);
        self.touches >= needed && !self.is_blocked(now)
    }

    /// Others wanted the lock while it was idle, and keeping it `had_paid` or not.
    pub(crate) fn recalled(&mut self, had_paid: bool, now: Instant) {
        let unpaid = self.unpaid;
        *self = Self::default();
        if !had_paid {
            let block = SHORTEST_BLOCK.saturating_mul(2_u32.saturating_pow(unpaid)).min(LONGEST_BLOCK);
            (self.unpaid, self.blocked_until) = (unpaid.saturating_add(1), Some(now.after(block)));
        }
    }

    /// Whether the key is not to be kept for a while.
    fn is_blocked(&self, now: Instant) -> bool {
        self.blocked_until.is_some_and(|until| now < until)
    }
}

/// So many keys whose hashes meet are told apart. Fewer, and keys that are used at the same time displace each other and are
/// never kept; more, and each look takes longer.
const WAYS: usize = 4;

/// The habits of a bounded number of keys, by a hash. A key takes the place of the one that was used least lately, which costs
/// no more than speed.
#[derive(Debug)]
pub(crate) struct Habits(Box<[[(u64, Habit); WAYS]]>);

impl Habits {
    /// For so many keys.
    pub(crate) fn of_keys(keys: usize) -> Self {
        Self(std::iter::repeat_n(<[_; WAYS]>::default(), keys.div_ceil(WAYS)).collect())
    }

    /// The habit of the key with this `hash`; `None` when it would take the place of one that is not to be kept for a
    /// while, which must not be forgotten.
    pub(crate) fn of(&mut self, hash: u64, now: Instant) -> Option<&mut Habit> {
        let sets = u64::try_from(self.0.len()).ok().filter(|sets| *sets > 0)?;
        let set = self.0.get_mut(usize::try_from(hash % sets).ok()?)?;
        if let Some(known) = set.iter().position(|(owner, _)| *owner == hash) {
            return set.get_mut(known).map(|(_, habit)| habit);
        }
        let others = set.iter_mut().filter(|(_, habit)| !habit.is_blocked(now));
        let (owner, habit) = others.min_by_key(|(_, habit)| habit.released_at)?;
        (*owner, *habit) = (hash, Habit::default());
        Some(habit)
    }
}

/// Whether keeping locks pays at all, for a manager whose keys others use as well.
///
/// What counts is how many round trips were saved for each that it cost others, and not how many keys paid: a few that are
/// used all the time may be worth what many others cost.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// How many recalls there were since the last judgement.
    recalls: u32,
    /// How many times those locks had been taken over.
    saved: u32,
}

impl Breaker {
    /// Others wanted an idle lock, which had been taken over so often. Until when nothing new is to be kept, if it did not pay.
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
    fn a_key_is_kept_where_calls_follow_each_other_quickly() {
        let mut habit = Habit::default();
        let table = [(0, false), (2001, false), (4001, true), (4002, true), (6003, false), (6004, true)];
        for (millis, is_kept) in table {
            assert_eq!(habit.released(at(millis)), is_kept, "at {millis}");
        }
    }

    #[test]
    fn a_recall_that_did_not_pay_blocks_for_twice_as_long_each_time_and_asks_for_more_touches() {
        let (mut habit, mut now) = (Habit::default(), 0);
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
    fn keys_that_meet_displace_the_one_that_was_used_least_lately_and_never_one_that_is_blocked() {
        let (mut habits, ways) = (Habits::of_keys(2 * WAYS), u64::try_from(WAYS).unwrap());
        // Even hashes meet in one set. A key is kept with its second release, if it was not forgotten in between.
        let is_kept = |habits: &mut Habits, hash, now| habits.of(hash, at(now)).unwrap().released(at(now));
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
        assert!(Habits::of_keys(0).of(4, at(0)).is_none());
    }

    #[test]
    fn the_breaker_opens_when_recalled_locks_have_saved_too_little() {
        // How often the locks of three recalls in a row had been taken over, and which recall opens it.
        let table = [
            ([0, 0, 0], Some(64)),
            ([2, 2, 2], None),
            ([1, 2, 2], Some(64)),
            ([0, 0, 7], None),
            ([0, 0, 6], Some(64)),
            ([0, 0, 1000], None),
        ];
        for (retakes, opens_at) in table {
            let mut breaker = Breaker::default();
            let opened = (1..=300).find(|recall| breaker.recalled(retakes[recall % 3], at(0)).is_some());
            assert_eq!(opened, opens_at, "{retakes:?}");
        }
        let mut breaker = Breaker::default();
        let open = (0..200).filter_map(|_| breaker.recalled(0, at(7))).collect::<Vec<_>>();
        assert_eq!(open, [at(10_007); 3], "after a pause, it looks anew");
    }

    #[test]
    fn one_key_that_is_used_all_the_time_does_not_hide_that_all_others_are_kept_in_vain() {
        let mut breaker = Breaker::default();
        let opened =
            (1..=64).find(|recall| breaker.recalled(if *recall % 16 == 0 { u32::MAX } else { 0 }, at(0)).is_some());
        assert_eq!(opened, Some(64));
    }
}
