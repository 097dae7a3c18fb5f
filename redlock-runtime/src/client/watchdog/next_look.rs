//! When the watchdog looks next: agreed upon without a lock by the task and by all who want it to look earlier.
//!
//! 1. The task forgets what it has planned *before* it looks. Who has something to be looked at is found by that look, or sees
//!    that nothing is planned and wakes the task.
//! 2. After the look it plans the next one, unless somebody wants an earlier one meanwhile.
//! 3. Who finds an earlier look planned wakes nobody.
//!
//! `tests/handshakes` goes through the orders of these steps, with this very file.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

/// In milliseconds of the clock; the end of time while the task rests.
#[derive(Debug)]
pub(crate) struct NextLook(AtomicU64);

impl NextLook {
    pub(crate) fn none() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    /// Whether a look at `at` is earlier than what is planned.
    pub(crate) fn is_after(&self, at: u64) -> bool {
        at < self.0.load(Ordering::Acquire)
    }

    /// There is one at `at`, or earlier.
    pub(crate) fn bring_forward(&self, at: u64) {
        self.0.fetch_min(at, Ordering::AcqRel);
    }

    /// Nothing is planned any more.
    pub(crate) fn forget(&self) {
        self.0.store(u64::MAX, Ordering::Release);
    }
}
