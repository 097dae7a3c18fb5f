//! Keys of which something was noted lately, in bounded memory.

use crate::lock::LockKey;
use crate::time::clock::Instant;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many keys are told apart. Fewer, and more keys are taken for others of which something was noted; each costs 8 bytes.
const SLOTS: usize = 1024;

/// Remembers keys for a while by a hash. A key may be taken for another one, which must cost no more than speed.
pub(crate) struct RecentKeys {
    memory: Duration,
    /// Until when the keys of a slot are remembered, in milliseconds of the clock.
    slots: Box<[AtomicU64]>,
    /// Without a random seed: whoever can choose keys that meet in a slot gains nothing, and a run can be repeated.
    hasher: BuildHasherDefault<DefaultHasher>,
}

impl RecentKeys {
    /// What is noted is remembered for as long as `memory`.
    pub(crate) fn remembered_for(memory: Duration) -> Self {
        let slots = std::iter::repeat_with(AtomicU64::default).take(SLOTS).collect();
        Self { memory, slots, hasher: BuildHasherDefault::default() }
    }

    pub(crate) fn note(&self, key: &LockKey, now: Instant) {
        if let Some(slot) = self.slot(key) {
            slot.store(now.after(self.memory).millis(), Ordering::Relaxed);
        }
    }

    /// Whether `key` was noted lately.
    pub(crate) fn contains(&self, key: &LockKey, now: Instant) -> bool {
        self.slot(key).is_some_and(|slot| now.millis() < slot.load(Ordering::Relaxed))
    }

    fn slot(&self, key: &LockKey) -> Option<&AtomicU64> {
        #[expect(clippy::cast_possible_truncation, reason = "the lowest bits choose the slot")]
        let index = self.hasher.hash_one(key.name()) as usize % SLOTS;
        self.slots.get(index)
    }
}

impl fmt::Debug for RecentKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecentKeys").field("memory", &self.memory).finish_non_exhaustive()
    }
}
