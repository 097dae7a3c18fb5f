//! Something that is to be done again after a while.

use crate::time::clock::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// When it is to be done again; at once, where it never was.
#[derive(Debug, Default)]
pub(crate) struct DueTime {
    /// In milliseconds since the origin.
    at: AtomicU64,
}

impl DueTime {
    /// Whether it is to be done `now`. Who is told so does it, and nobody else for as long as `pause`.
    pub(crate) fn is_now(&self, now: Instant, pause: Duration) -> bool {
        let at = self.at.load(Ordering::Relaxed);
        let next = now.after(pause).millis();
        now.millis() >= at && self.at.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// It was done `now`, and is to be done again after `pause`.
    pub(crate) fn done(&self, now: Instant, pause: Duration) {
        self.at.store(now.after(pause).millis(), Ordering::Relaxed);
    }

    /// It is to be done at once, whatever was done before.
    pub(crate) fn reset(&self) {
        self.at.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_done_once_in_a_while() {
        let (due, pause) = (DueTime::default(), Duration::from_secs(10));
        let is_now = |second| due.is_now(Instant::from_origin(Duration::from_secs(second)), pause);
        assert_eq!([0, 0, 9, 10, 11].map(is_now), [true, false, false, true, false]);
        due.done(Instant::from_origin(Duration::from_secs(15)), pause);
        assert_eq!([20, 25].map(is_now), [false, true]);
        due.reset();
        assert_eq!([26, 27].map(is_now), [true, false]);
    }
}
