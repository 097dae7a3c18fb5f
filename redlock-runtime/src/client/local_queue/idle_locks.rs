//! Data about the idle locks of a manager: of all together, and of those in one shard.

use crate::protocol::keeping::{KeyUsage, LingerBackoff, UsageTable};
use crate::time::clock::Instant;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Minimum number of keys whose use each shard remembers: 4096 in total, with 40 bytes each. Smaller: keys are
/// forgotten before they are used again. Larger: more memory.
const LEAST_HABITS: usize = 64;

/// Number of remembered keys for each lock that may be idle. Smaller: locks are not kept although there is room for
/// them.
const HABITS_PER_IDLE: usize = 4;

/// Shared data about all idle locks of a manager.
#[derive(Debug, Default)]
pub(super) struct Idling {
    /// Set when any call has ever wanted its lock to become idle. Most managers skip everything else.
    pub(super) is_wanted: AtomicBool,
    /// Set when the last handle of the manager was dropped.
    pub(super) has_no_handle: AtomicBool,
    /// Number of idle locks.
    pub(super) count: AtomicUsize,
    /// Next shard that releases a lock when there are too many.
    pub(super) next_part: AtomicUsize,
    breaker: Mutex<LingerBackoff>,
    /// End of the pause in which no further lock becomes idle, in milliseconds of the clock.
    paused_until: AtomicU64,
    pub(super) kept: AtomicU64,
    pub(super) retaken: AtomicU64,
    pub(super) recalled: AtomicU64,
    pub(super) expired: AtomicU64,
}

impl Idling {
    pub(super) fn is_paused(&self, now: Instant) -> bool {
        now.millis() < self.paused_until.load(Ordering::Relaxed)
    }

    /// Records the recall of a lock that was reused `retakes` times. If a pause begins now, returns its end.
    pub(super) fn recalled(&self, retakes: u32, now: Instant) -> Option<Instant> {
        // Code under this mutex cannot panic.
        let until = self.breaker.lock().unwrap_or_else(PoisonError::into_inner).recalled(retakes, now)?;
        self.paused_until.store(until.millis(), Ordering::Relaxed);
        Some(until)
    }
}

/// Idle locks of one shard.
#[derive(Default)]
pub(super) struct IdleLocks {
    /// End of the idle time and key of each lock, in the order of the ends.
    order: BTreeSet<(Instant, Arc<str>)>,
    /// Created for the first key that might be kept.
    habits: Option<UsageTable>,
}

impl IdleLocks {
    /// Returns the recent use of the key with this `hash`, without the part that chose the shard. Up to `most` locks
    /// may be idle in the shard.
    pub(super) fn habit(&mut self, hash: u64, most: usize, now: Instant) -> Option<&mut KeyUsage> {
        let keys = most.saturating_mul(HABITS_PER_IDLE).max(LEAST_HABITS);
        self.habits.get_or_insert_with(|| UsageTable::with_key_count(keys)).of(hash, now)
    }

    /// Adds the lock of the key called `name`.
    pub(super) fn add(&mut self, name: Arc<str>, until: Instant) {
        self.order.insert((until, name));
    }

    /// Removes the lock of the key called `name`, which was idle until then.
    pub(super) fn remove(&mut self, name: Arc<str>, until: Instant) {
        self.order.remove(&(until, name));
    }

    /// Returns the key whose idle time ends first.
    pub(super) fn first(&self) -> Option<(Instant, Arc<str>)> {
        self.order.first().cloned()
    }
}
