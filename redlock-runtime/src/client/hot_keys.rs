//! Keys for which others have waited lately, and whether a first try for such a key is skipped.

use crate::lock::LockKey;
use crate::time::clock::Instant;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// For how long a key is hot after others have waited for it. Smaller, a first try fails more often before the call waits;
/// larger, calls for a key that has become free go through the queues for longer, which costs a script instead of a `SET`.
const MEMORY: Duration = Duration::from_secs(2);
/// How many keys are told apart. Fewer, and more keys are taken for hot ones; each costs 8 bytes.
const SLOTS: usize = 1024;

/// Remembers contention by a hash of the key, in bounded memory: a key that is taken for another one is asked for by a
/// script instead of a plain `SET`, and that is all.
#[derive(Debug)]
pub(crate) struct HotKeys {
    /// Until when the keys of a slot are hot, in milliseconds of the clock.
    slots: Box<[AtomicU64]>,
    /// Without a random seed: whoever can choose keys that meet in a slot gains nothing, and a run can be repeated.
    hasher: BuildHasherDefault<DefaultHasher>,
}

impl HotKeys {
    pub(crate) fn new() -> Self {
        Self {
            slots: std::iter::repeat_with(AtomicU64::default).take(SLOTS).collect(),
            hasher: BuildHasherDefault::default(),
        }
    }

    /// Whether a call for `key` may try all nodes at once, without standing in their queues first. Where others have waited
    /// lately it would fail; but who does not wait may not stand in a queue.
    pub(crate) fn may_try_at_once(&self, key: &LockKey, waits: bool, now: Instant) -> bool {
        !(waits && self.is_hot(key, now))
    }

    /// Others wait for `key` now.
    pub(crate) fn heat(&self, key: &LockKey, now: Instant) {
        if let Some(slot) = self.slot(key) {
            slot.store(now.after(MEMORY).millis(), Ordering::Relaxed);
        }
    }

    /// Whether others have waited for `key` lately.
    fn is_hot(&self, key: &LockKey, now: Instant) -> bool {
        self.slot(key).is_some_and(|slot| now.millis() < slot.load(Ordering::Relaxed))
    }

    fn slot(&self, key: &LockKey) -> Option<&AtomicU64> {
        #[expect(clippy::cast_possible_truncation, reason = "the lowest bits choose the slot")]
        let index = self.hasher.hash_one(key.name()) as usize % SLOTS;
        self.slots.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_cool_down() {
        let at = |millis| Instant::from_origin(Duration::from_millis(millis));
        let (hot, key) = (HotKeys::new(), LockKey::from("order:7"));
        assert!(!hot.is_hot(&key, at(5)));
        hot.heat(&key, at(10));
        assert!(hot.is_hot(&key, at(2009)));
        assert!(!hot.is_hot(&key, at(2010)));
        let tries = [true, false].map(|waits| hot.may_try_at_once(&key, waits, at(10)));
        assert_eq!(tries, [false, true], "who does not wait has no other way");
    }
}
