//! Recently noted keys, in bounded memory.

use crate::lock::LockKey;
use crate::time::clock::Instant;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of keys that can be distinguished. Smaller: more keys are mistaken for noted ones. Each costs 8 bytes.
const SLOTS: usize = 1024;

/// Number of hash bits in the slot of a key. Smaller: more keys are mistaken for noted ones. Larger: the times in the
/// slots end before the clock does.
const TAG_BITS: u32 = 16;

/// Memory for keys by a hash. A key may be mistaken for another one. That must only cost speed.
pub(crate) struct RecentKeys {
    memory: Duration,
    /// End of the memory for the last key of a slot, in milliseconds of the clock. The lowest bits are the tag of the
    /// key.
    slots: Box<[AtomicU64]>,
    /// Hasher without a random seed. Colliding keys are useless to an attacker, and a run can be repeated.
    hasher: BuildHasherDefault<DefaultHasher>,
}

impl RecentKeys {
    /// Creates a memory that keeps each note for the duration `memory`.
    pub(crate) fn with_retention(memory: Duration) -> Self {
        let slots = std::iter::repeat_with(AtomicU64::default).take(SLOTS).collect();
        Self { memory, slots, hasher: BuildHasherDefault::default() }
    }

    pub(crate) fn note(&self, key: &LockKey, now: Instant) {
        self.note_until(key, now.after(self.memory));
    }

    /// Remembers `key` until then, instead of for the usual time.
    pub(crate) fn note_until(&self, key: &LockKey, until: Instant) {
        if let (Some(slot), tag) = self.slot(key) {
            slot.store(until.millis() << TAG_BITS | tag, Ordering::Relaxed);
        }
    }

    /// Returns `true` if `key` was noted recently.
    pub(crate) fn contains(&self, key: &LockKey, now: Instant) -> bool {
        self.left(key, now).is_some()
    }

    /// Returns the time at which `key` was noted, unless it was noted for an unusual time.
    pub(crate) fn noted_at(&self, key: &LockKey, now: Instant) -> Option<Instant> {
        self.left(key, now).map(|left| now.after(left).before(self.memory))
    }

    /// Returns the time for which `key` is still remembered.
    pub(crate) fn left(&self, key: &LockKey, now: Instant) -> Option<Duration> {
        let (slot, tag) = self.slot(key);
        let noted = slot?.load(Ordering::Relaxed);
        let is_meant = noted & ((1 << TAG_BITS) - 1) == tag;
        let left = (noted >> TAG_BITS).checked_sub(now.millis()).filter(|left| is_meant && *left > 0)?;
        Some(Duration::from_millis(left))
    }

    fn slot(&self, key: &LockKey) -> (Option<&AtomicU64>, u64) {
        let hash = self.hasher.hash_one(key.name());
        #[expect(clippy::cast_possible_truncation, reason = "the lowest bits choose the slot")]
        let index = hash as usize % SLOTS;
        (self.slots.get(index), hash >> (u64::BITS - TAG_BITS))
    }
}

impl fmt::Debug for RecentKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecentKeys").field("memory", &self.memory).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_key_expires_and_is_not_confused_with_a_key_in_the_same_slot() {
        let at = |millis| Instant::from_origin(Duration::from_millis(millis));
        let keys = RecentKeys::with_retention(Duration::from_secs(2));
        let slot = |key: &LockKey| keys.slot(key).0.map(std::ptr::from_ref);
        let key = LockKey::from("order:7");
        let others = (0..100_000).map(|id| LockKey::from(format!("order:{id}")));
        let neighbour = others.into_iter().find(|other| *other != key && slot(other) == slot(&key)).unwrap();
        keys.note(&key, at(10));
        assert_eq!(keys.left(&key, at(1000)), Some(Duration::from_millis(1010)));
        assert!(keys.contains(&key, at(2009)) && !keys.contains(&key, at(2010)));
        assert!(!keys.contains(&neighbour, at(1000)));
        keys.note_until(&neighbour, at(60_000));
        assert_eq!(keys.left(&neighbour, at(2010)), Some(Duration::from_millis(57_990)));
        assert!(!keys.contains(&key, at(1000)), "the last one counts");
    }
}
