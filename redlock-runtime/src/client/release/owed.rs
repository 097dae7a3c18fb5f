//! How many releases a node owes answers to, and for how long it has answered none: counted without a lock.
//!
//! 1. Who is the first to owe sets the time, and who answers the last one takes it away. Both may happen at the same moment, so that
//!    the time is gone although something is owed: whoever owes next sets it then.
//! 2. The other way round, a time may stay behind when nothing is owed: it counts only together with the number.
//!
//! `tests/handshakes` goes through the orders of these steps, with this very file.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[derive(Debug)]
pub(crate) struct Owed {
    count: AtomicUsize,
    /// In milliseconds of the clock; 0 when there is none.
    since: AtomicU64,
}

impl Owed {
    pub(crate) fn nothing() -> Self {
        Self { count: AtomicUsize::new(0), since: AtomicU64::new(0) }
    }

    /// One more, from `now` on, which is not 0.
    pub(crate) fn owes(&self, now: u64) {
        let is_first = self.count.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first || self.since.load(Ordering::Relaxed) == 0 {
            self.since.store(now, Ordering::Relaxed);
        }
    }

    /// One of them was answered.
    pub(crate) fn heard(&self, now: u64) {
        let is_last = self.count.fetch_sub(1, Ordering::Relaxed) == 1;
        self.since.store(if is_last { 0 } else { now }, Ordering::Relaxed);
    }

    /// Since when none was answered; 0 when nothing is owed.
    pub(crate) fn since(&self) -> u64 {
        if self.count.load(Ordering::Relaxed) > 0 { self.since.load(Ordering::Relaxed) } else { 0 }
    }
}
