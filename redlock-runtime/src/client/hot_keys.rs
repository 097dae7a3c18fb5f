//! Keys for which others have waited lately: whether a first try for such a key is skipped, and whether a place in its queues
//! is asked for a little later.

use crate::client::recent_keys::RecentKeys;
use crate::lock::LockKey;
use crate::time::clock::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// For how long a key is hot after others have waited for it. Smaller, a first try fails more often before the call waits;
/// larger, calls for a key that has become free go through the queues for longer, which costs a script instead of a `SET`.
const MEMORY: Duration = Duration::from_secs(2);

/// A lock that was idle is there within this time. Smaller, a key counts as one that many want when nobody does, and the next
/// call asks by a script; larger, a call for a key that many want tries in vain first.
const SHORT_WAIT: Duration = Duration::from_millis(5);

/// Two short waits that are no further apart were not for an idle lock, which is not kept again so soon. Smaller, calls for a
/// key that two processes use in turns try in vain first; larger, a key counts as wanted by many when it is idle elsewhere now
/// and then.
const SHORT_WAITS_APART: Duration = Duration::from_millis(500);

/// For how long one node is asked first for several keys when a call has found some of them taken. Smaller, and those who want the
/// same keys keep the votes of the nodes from each other; larger, and a call that meets nobody takes a round trip more for longer.
const MEETING: Duration = Duration::from_millis(200);

/// So many others make a crowd. Fewer, and all of them may be done before whoever has given the lock back asks for it again;
/// more, and hand-overs among them are slowed down by that.
const CROWD: u32 = 16;

/// For how long whoever has given a lock to a crowd lets it be before asking for it again. Smaller, and the nodes have that
/// question before them when the next one asks whether the lock is its own; larger, and the crowd may be gone.
const REST: Duration = Duration::from_millis(1);

/// Remembers contention: a key that is taken for another one is asked for by a script instead of a plain `SET`, or a
/// millisecond later, or at one node before the others, and that is all.
#[derive(Debug)]
pub(crate) struct HotKeys {
    wanted: RecentKeys,
    /// Those that a call has waited for, and not for long, where locks linger.
    waited_for: RecentKeys,
    /// Those of several that a call has found taken.
    met: RecentKeys,
    /// Those that were given to a crowd just now.
    given: RecentKeys,
    /// Until when locks that others want are taken for locks that they use, in milliseconds of the clock.
    in_use_until: AtomicU64,
}

impl HotKeys {
    pub(crate) fn new() -> Self {
        Self {
            wanted: RecentKeys::remembered_for(MEMORY),
            waited_for: RecentKeys::remembered_for(SHORT_WAITS_APART),
            met: RecentKeys::remembered_for(MEETING),
            given: RecentKeys::remembered_for(REST),
            in_use_until: AtomicU64::default(),
        }
    }

    /// Whether a call for `key` may try all nodes at once, without standing in their queues first. Where others have waited
    /// lately it would fail; but who does not wait may not stand in a queue.
    pub(crate) fn may_try_at_once(&self, key: &LockKey, waits: bool, now: Instant) -> bool {
        !(waits && self.wanted.contains(key, now))
    }

    /// Whether one node should be asked first for all of `keys`, because others have had some of them lately. To ask all at once
    /// saves a round trip where it succeeds, and keeps votes from others where it does not.
    pub(crate) fn asks_one_first<'k>(&self, mut keys: impl Iterator<Item = &'k LockKey>, now: Instant) -> bool {
        keys.any(|key| self.met.contains(key, now))
    }

    /// A call for all of `keys` has found some of them taken.
    pub(crate) fn meet<'k>(&self, keys: impl Iterator<Item = &'k LockKey>, now: Instant) {
        keys.for_each(|key| self.met.note(key, now));
    }

    /// Others wait for `key` now.
    pub(crate) fn heat(&self, key: &LockKey, now: Instant) {
        self.wanted.note(key, now);
    }

    /// Idle locks do not pay here, and so hardly anywhere: until then a short wait counts as any other.
    pub(crate) fn presume_in_use(&self, until: Instant) {
        self.in_use_until.store(until.millis(), Ordering::Relaxed);
    }

    /// A call has waited for `key` since `begun`, which others want or had left idle: a first short wait counts as that.
    pub(crate) fn heat_unless_idle(&self, key: &LockKey, begun: Instant, now: Instant) {
        let is_presumed_in_use = now.millis() < self.in_use_until.load(Ordering::Relaxed);
        if is_presumed_in_use || now.since(begun) >= SHORT_WAIT || self.waited_for.contains(key, now) {
            self.heat(key, now);
        }
        self.waited_for.note(key, now);
    }

    /// The lock of `key` is given back now, for which so many others wait.
    pub(crate) fn give(&self, key: &LockKey, waiters: u32, now: Instant) {
        if waiters >= CROWD {
            self.given.note(key, now);
        }
    }

    /// How much later the nodes should be asked for a place in the queues of `key`. It would be the last one, and the nodes
    /// have the next holder to answer first.
    pub(crate) fn rest(&self, key: &LockKey, now: Instant) -> Duration {
        self.given.left(key, now).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_cool_down() {
        let at = |millis| Instant::from_origin(Duration::from_millis(millis));
        let (hot, key) = (HotKeys::new(), LockKey::from("order:7"));
        let is_hot = |now| !hot.may_try_at_once(&key, true, now);
        assert!(!is_hot(at(5)));
        hot.heat(&key, at(10));
        assert!(is_hot(at(2009)));
        assert!(!is_hot(at(2010)));
        assert!(hot.may_try_at_once(&key, false, at(10)), "who does not wait has no other way");
    }

    #[test]
    fn one_short_wait_is_for_an_idle_lock_and_two_are_not() {
        let at = |millis| Instant::from_origin(Duration::from_millis(millis));
        // When the waits begin and end, and whether the key is hot after each.
        let table: [&[(u64, u64, bool)]; 4] = [
            &[(10, 15, true)],
            &[(10, 14, false), (513, 513, true)],
            &[(10, 14, false), (514, 514, false), (515, 515, true)],
            &[(10, 14, false), (2000, 2005, true)],
        ];
        for waits in table {
            let (hot, key) = (HotKeys::new(), LockKey::from("order:7"));
            for &(begun, now, is_hot) in waits {
                hot.heat_unless_idle(&key, at(begun), at(now));
                assert_eq!(!hot.may_try_at_once(&key, true, at(now)), is_hot, "{waits:?} at {now}");
            }
        }
    }

    #[test]
    fn where_idle_locks_do_not_pay_a_short_wait_is_for_a_lock_that_is_used() {
        let at = |millis| Instant::from_origin(Duration::from_millis(millis));
        for (now, is_hot) in [(99, true), (100, false)] {
            let (hot, key) = (HotKeys::new(), LockKey::from("order:7"));
            hot.presume_in_use(at(100));
            hot.heat_unless_idle(&key, at(now), at(now));
            assert_eq!(!hot.may_try_at_once(&key, true, at(now)), is_hot, "at {now}");
        }
    }

    #[test]
    fn keys_that_were_met_are_asked_for_at_one_node_first() {
        let at = |millis| Instant::from_origin(Duration::from_millis(millis));
        let (hot, keys) = (HotKeys::new(), ["a", "b", "c"].map(LockKey::from));
        assert!(!hot.asks_one_first(keys.iter(), at(10)));
        hot.meet(keys[..2].iter(), at(10));
        for (keys, now, expected) in [(&keys[1..], 209, true), (&keys[1..], 210, false), (&keys[2..], 11, false)] {
            assert_eq!(hot.asks_one_first(keys.iter(), at(now)), expected, "{keys:?} at {now}");
        }
        assert!(hot.may_try_at_once(&keys[0], true, at(11)), "a call for one key has nobody's votes to keep");
    }

    #[test]
    fn whoever_has_given_a_key_to_a_crowd_lets_it_be_for_a_moment() {
        let at = |millis| Instant::from_origin(Duration::from_millis(millis));
        let table = [(0, 10, 0), (CROWD - 1, 10, 0), (CROWD, 10, 1), (u32::MAX, 10, 1), (CROWD, 11, 0)];
        for (waiters, asked_at, rest) in table {
            let (hot, key) = (HotKeys::new(), LockKey::from("order:7"));
            hot.give(&key, waiters, at(10));
            assert_eq!(hot.rest(&key, at(asked_at)), Duration::from_millis(rest), "{waiters} wait");
        }
    }
}
