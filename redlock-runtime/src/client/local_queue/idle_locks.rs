//! What is known of the idle locks of a manager: of all together, and of those in one part of its lines.

use crate::protocol::keeping::{Breaker, Habit, Habits};
use crate::time::clock::Instant;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// For how many keys each part of the lines remembers at least how they are used: 4096 in all, in 40 bytes each. Fewer, and
/// keys are forgotten before they are used again; more, and more memory.
const LEAST_HABITS: usize = 64;

/// And for so many for each lock that may be idle. Fewer, and locks are not kept although there is room for them.
const HABITS_PER_IDLE: usize = 4;

/// What all idle locks of a manager have in common.
#[derive(Debug, Default)]
pub(super) struct Idling {
    /// Whether any call has ever wanted its lock to be idle: most managers save themselves all the rest.
    pub(super) is_wanted: AtomicBool,
    /// Whether nobody can call the manager any more.
    pub(super) has_no_handle: AtomicBool,
    /// How many locks are idle.
    pub(super) count: AtomicUsize,
    /// The part of the lines that gives back a lock when there are too many.
    pub(super) next_part: AtomicUsize,
    breaker: Mutex<Breaker>,
    /// Until when nothing new is kept, in milliseconds of the clock.
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

    /// A lock was recalled that had been taken over so often. Until when nothing new is kept, if that begins now.
    pub(super) fn recalled(&self, retakes: u32, now: Instant) -> Option<Instant> {
        // No code that can panic runs under this mutex.
        let until = self.breaker.lock().unwrap_or_else(PoisonError::into_inner).recalled(retakes, now)?;
        self.paused_until.store(until.millis(), Ordering::Relaxed);
        Some(until)
    }
}

/// The idle locks of one part of the lines.
#[derive(Default)]
pub(super) struct IdleLocks {
    /// Until when each is idle, and its key, in the order in which their time ends.
    order: BTreeSet<(Instant, Arc<str>)>,
    /// Made for the first key that might be kept.
    habits: Option<Habits>,
}

impl IdleLocks {
    /// How the key with this `hash` is used, of which nothing tells that it is in this part of the lines. As many as `most` may
    /// be idle in it.
    pub(super) fn habit(&mut self, hash: u64, most: usize, now: Instant) -> Option<&mut Habit> {
        let keys = most.saturating_mul(HABITS_PER_IDLE).max(LEAST_HABITS);
        self.habits.get_or_insert_with(|| Habits::of_keys(keys)).of(hash, now)
    }

    /// The lock of the key called `name` is idle until then.
    pub(super) fn add(&mut self, name: Arc<str>, until: Instant) {
        self.order.insert((until, name));
    }

    /// The lock of the key called `name`, which was idle until then, is so no more.
    pub(super) fn remove(&mut self, name: Arc<str>, until: Instant) {
        self.order.remove(&(until, name));
    }

    /// The key whose time ends first.
    pub(super) fn first(&self) -> Option<(Instant, Arc<str>)> {
        self.order.first().cloned()
    }
}
