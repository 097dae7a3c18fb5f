//! Time of the watchdog's next check, shared without a mutex by its task and by all callers that need an earlier check.
//!
//! 1. The task clears its plan *before* it checks the locks. A lock that becomes due afterwards is found by that check,
//!    or its caller sees that nothing is planned and wakes the task.
//! 2. After the check, the task plans the next one, unless a caller has requested an earlier one meanwhile.
//! 3. A caller that finds an earlier check planned does not wake the task.
//!
//! `tests/handshakes` checks all orders of these steps, with this very file.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

/// Time in milliseconds of the clock; the maximum while the task rests.
#[derive(Debug)]
pub(crate) struct NextLook(AtomicU64);

impl NextLook {
    pub(crate) fn none() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    /// Returns `true` if a check at `at` is earlier than the planned one.
    pub(crate) fn is_after(&self, at: u64) -> bool {
        at < self.0.load(Ordering::Acquire)
    }

    /// Moves the next check forward to `at`, unless it is earlier already.
    pub(crate) fn bring_forward(&self, at: u64) {
        self.0.fetch_min(at, Ordering::AcqRel);
    }

    /// Clears the plan.
    pub(crate) fn forget(&self) {
        self.0.store(u64::MAX, Ordering::Release);
    }
}
