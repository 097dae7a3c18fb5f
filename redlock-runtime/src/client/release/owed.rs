//! Number of unanswered releases of a node, and the time since which it has answered none, without a mutex.
//!
//! 1. The first unanswered release sets the time, and the last answer clears it. If both happen at the same moment, the
//!    time may be cleared although a release is unanswered: the next release sets it in that case.
//! 2. Conversely, a time may remain when nothing is unanswered: it is valid only together with the number.
//!
//! `tests/handshakes` checks all orders of these steps, with this very file.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[derive(Debug)]
pub(crate) struct Owed {
    count: AtomicUsize,
    /// Time in milliseconds of the clock; 0 if there is none.
    since: AtomicU64,
}

impl Owed {
    pub(crate) fn nothing() -> Self {
        Self { count: AtomicUsize::new(0), since: AtomicU64::new(0) }
    }

    /// Adds an unanswered release at `now`, which is not 0.
    pub(crate) fn owes(&self, now: u64) {
        let is_first = self.count.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first || self.since.load(Ordering::Relaxed) == 0 {
            self.since.store(now, Ordering::Relaxed);
        }
    }

    /// Records an answer.
    pub(crate) fn heard(&self, now: u64) {
        let is_last = self.count.fetch_sub(1, Ordering::Relaxed) == 1;
        self.since.store(if is_last { 0 } else { now }, Ordering::Relaxed);
    }

    /// Returns the time since which no release was answered; 0 if nothing is unanswered.
    pub(crate) fn since(&self) -> u64 {
        if self.count.load(Ordering::Relaxed) > 0 { self.since.load(Ordering::Relaxed) } else { 0 }
    }
}
