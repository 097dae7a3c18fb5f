//! What happens often is told now and then, with how often it has happened.

use crate::time::clock::Instant;
use crate::time::due_time::DueTime;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often something has happened that is told now and then.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    times: AtomicU64,
    /// When it is to be told again.
    next: DueTime,
}

impl Throttle {
    /// It has happened, `now`. Returns how often since it was told the last time, if it is to be told now; then not again
    /// for a `pause`.
    pub(crate) fn times(&self, now: Instant, pause: Duration) -> Option<u64> {
        self.times.fetch_add(1, Ordering::Relaxed);
        // Of those who come at the same moment, one tells it.
        self.next.is_now(now, pause).then(|| self.times.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_often_is_told_once_with_a_count() {
        let (throttle, second) = (Throttle::default(), Duration::from_secs(1));
        let at = |millis| throttle.times(Instant::from_origin(Duration::from_millis(millis)), second);
        assert_eq!([0, 1, 500, 999, 1000, 1001, 5000].map(at), [Some(1), None, None, None, Some(4), None, Some(2)]);
    }
}
