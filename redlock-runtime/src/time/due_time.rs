//! Due time of a repeated task.

use crate::time::clock::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Due time of a repeated task. A new value is due at once.
#[derive(Debug, Default)]
pub(crate) struct DueTime {
    /// Due time in milliseconds since the origin.
    at: AtomicU64,
}

impl DueTime {
    /// Returns `true` if the task is due at `now`. Only one of several concurrent callers gets `true`. The task is due
    /// again after `pause`.
    pub(crate) fn is_now(&self, now: Instant, pause: Duration) -> bool {
        let at = self.at.load(Ordering::Relaxed);
        let next = now.after(pause).millis();
        now.millis() >= at && self.at.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Records that the task was done at `now`, and is due again after `pause`.
    pub(crate) fn done(&self, now: Instant, pause: Duration) {
        self.at.store(now.after(pause).millis(), Ordering::Relaxed);
    }

    /// Makes the task due at once.
    pub(crate) fn reset(&self) {
        self.at.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_task_is_due_once_per_pause() {
        let (due, pause) = (DueTime::default(), Duration::from_secs(10));
        let is_now = |second| due.is_now(Instant::from_origin(Duration::from_secs(second)), pause);
        assert_eq!([0, 0, 9, 10, 11].map(is_now), [true, false, false, true, false]);
        due.done(Instant::from_origin(Duration::from_secs(15)), pause);
        assert_eq!([20, 25].map(is_now), [false, true]);
        due.reset();
        assert_eq!([26, 27].map(is_now), [true, false]);
    }
}
