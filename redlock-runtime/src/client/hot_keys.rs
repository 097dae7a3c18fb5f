//! Recently contended keys. Calls for such a key skip the first try, or join its queues a little later.

use crate::client::recent_keys::RecentKeys;
use crate::lock::LockKey;
use crate::time::clock::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time for which a key is hot after contention. Smaller: first tries fail more often. Larger: calls for a key that has
/// become free use the queues for longer, which costs a script instead of a `SET`.
const MEMORY: Duration = Duration::from_secs(2);

/// Longest wait that may have been for an idle lock. Smaller: an uncontended key seems contended, and the next call
/// uses a script. Larger: a call for a contended key makes a useless first try.
const SHORT_WAIT: Duration = Duration::from_millis(5);

/// Largest distance of two short waits that were not for an idle lock, because a lock does not become idle again so
/// soon.
/// Smaller: calls for a key that two processes use in turns make useless first tries. Larger: a key that is sometimes
/// idle elsewhere seems contended.
const SHORT_WAITS_APART: Duration = Duration::from_millis(500);

/// Time for which one node is asked first for several keys, after a call has found some of them taken. Smaller:
/// competing calls for the same keys split the votes of the nodes. Larger: a call without competition needs another
/// round trip for longer.
const MEETING: Duration = Duration::from_millis(200);

/// Number of waiters that make a crowd. Smaller: all of them may be done before the releasing process asks for the lock
/// again. Larger: hand-overs among fewer waiters are slowed down by that request.
const CROWD: u32 = 16;

/// Pause of a process that has released a lock to a crowd, before it asks for the lock again. Smaller: the nodes
/// process that request before the next holder's question. Larger: the crowd may be gone.
const REST: Duration = Duration::from_millis(1);

/// Memory of contention. A wrong entry only costs speed. The key is requested by a script instead of a plain `SET`, a
/// millisecond later, or at one node first.
#[derive(Debug)]
pub(crate) struct HotKeys {
    wanted: RecentKeys,
    /// Keys with a recent short wait of a call, if locks linger.
    waited_for: RecentKeys,
    /// Keys that a call for several keys has found taken.
    met: RecentKeys,
    /// Keys whose lock was just released to a crowd.
    given: RecentKeys,
    /// Time until which wanted locks are presumed to be in use, not idle, in milliseconds of the clock.
    in_use_until: AtomicU64,
}

impl HotKeys {
    pub(crate) fn new() -> Self {
        Self {
            wanted: RecentKeys::with_retention(MEMORY),
            waited_for: RecentKeys::with_retention(SHORT_WAITS_APART),
            met: RecentKeys::with_retention(MEETING),
            given: RecentKeys::with_retention(REST),
            in_use_until: AtomicU64::default(),
        }
    }

    /// Returns `true` if a call for `key` may try all nodes at once, before it joins their queues. On a contended key,
    /// the try would fail; but a call that does not wait cannot join a queue.
    pub(crate) fn may_try_at_once(&self, key: &LockKey, waits: bool, now: Instant) -> bool {
        !(waits && self.wanted.contains(key, now))
    }

    /// Returns `true` if one node should be asked first for all of `keys`, because some of them were contended
    /// recently. Asking all nodes at once saves a round trip if it succeeds, and takes votes away from other calls if
    /// it fails.
    pub(crate) fn should_ask_one_node_first<'k>(
        &self,
        mut keys: impl Iterator<Item = &'k LockKey>,
        now: Instant,
    ) -> bool {
        keys.any(|key| self.met.contains(key, now))
    }

    /// Records that a call for all of `keys` has found some of them taken.
    pub(crate) fn meet<'k>(&self, keys: impl Iterator<Item = &'k LockKey>, now: Instant) {
        keys.for_each(|key| self.met.note(key, now));
    }

    /// Records that other tokens wait for `key` now.
    pub(crate) fn heat(&self, key: &LockKey, now: Instant) {
        self.wanted.note(key, now);
    }

    /// Records that idle locks do not pay here, so that they are rare everywhere: until then, a short wait counts like
    /// any other.
    pub(crate) fn presume_in_use(&self, until: Instant) {
        self.in_use_until.store(until.millis(), Ordering::Relaxed);
    }

    /// Records that a call has waited for `key` since `begun`. Other tokens wanted the lock, or had left it idle. A
    /// first short wait is attributed to an idle lock.
    pub(crate) fn heat_unless_idle(&self, key: &LockKey, begun: Instant, now: Instant) {
        let is_presumed_in_use = now.millis() < self.in_use_until.load(Ordering::Relaxed);
        if is_presumed_in_use || now.since(begun) >= SHORT_WAIT || self.waited_for.contains(key, now) {
            self.heat(key, now);
        }
        self.waited_for.note(key, now);
    }

    /// Records that the lock of `key` is released now, while this number of tokens waits for it.
    pub(crate) fn give(&self, key: &LockKey, waiters: u32, now: Instant) {
        if waiters >= CROWD {
            self.given.note(key, now);
        }
    }

    /// Returns the pause before the nodes are asked for a place in the queues of `key`. It would be the last place, and
    /// the nodes should answer the next holder first.
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
    fn second_short_wait_soon_after_the_first_makes_the_key_hot() {
        let at = |millis| Instant::from_origin(Duration::from_millis(millis));
        // Begin and end of the waits, and whether the key is hot after each.
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
    fn short_wait_makes_the_key_hot_while_the_lock_is_presumed_in_use() {
        let at = |millis| Instant::from_origin(Duration::from_millis(millis));
        for (now, is_hot) in [(99, true), (100, false)] {
            let (hot, key) = (HotKeys::new(), LockKey::from("order:7"));
            hot.presume_in_use(at(100));
            hot.heat_unless_idle(&key, at(now), at(now));
            assert_eq!(!hot.may_try_at_once(&key, true, at(now)), is_hot, "at {now}");
        }
    }

    #[test]
    fn recently_contended_keys_are_tried_at_one_node_first() {
        let at = |millis| Instant::from_origin(Duration::from_millis(millis));
        let (hot, keys) = (HotKeys::new(), ["a", "b", "c"].map(LockKey::from));
        assert!(!hot.should_ask_one_node_first(keys.iter(), at(10)));
        hot.meet(keys[..2].iter(), at(10));
        for (keys, now, expected) in [(&keys[1..], 209, true), (&keys[1..], 210, false), (&keys[2..], 11, false)] {
            assert_eq!(hot.should_ask_one_node_first(keys.iter(), at(now)), expected, "{keys:?} at {now}");
        }
        assert!(hot.may_try_at_once(&keys[0], true, at(11)), "a call for one key has nobody's votes to keep");
    }

    #[test]
    fn caller_pauses_after_releasing_a_key_to_many_waiters() {
        let at = |millis| Instant::from_origin(Duration::from_millis(millis));
        let table = [(0, 10, 0), (CROWD - 1, 10, 0), (CROWD, 10, 1), (u32::MAX, 10, 1), (CROWD, 11, 0)];
        for (waiters, asked_at, rest) in table {
            let (hot, key) = (HotKeys::new(), LockKey::from("order:7"));
            hot.give(&key, waiters, at(10));
            assert_eq!(hot.rest(&key, at(asked_at)), Duration::from_millis(rest), "{waiters} wait");
        }
    }
}
