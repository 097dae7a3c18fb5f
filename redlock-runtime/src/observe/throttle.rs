//! Limits the rate of events, and counts the omitted ones.

use crate::time::clock::Instant;
use crate::time::due_time::DueTime;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counter of occurrences between two events.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    times: AtomicU64,
    /// Earliest time of the next event.
    next: DueTime,
}

impl Throttle {
    /// Records an occurrence at `now`. Returns the number of occurrences since the last event, if an event is due. The next event
    /// is due after `pause`.
    pub(crate) fn times(&self, now: Instant, pause: Duration) -> Option<u64> {
        self.times.fetch_add(1, Ordering::Relaxed);
        // Of concurrent calls, one writes the event.
        self.next.is_now(now, pause).then(|| self.times.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_event_is_logged_once_with_a_count() {
        let (throttle, second) = (Throttle::default(), Duration::from_secs(1));
        let at = |millis| throttle.times(Instant::from_origin(Duration::from_millis(millis)), second);
        assert_eq!([0, 1, 500, 999, 1000, 1001, 5000].map(at), [Some(1), None, None, None, Some(4), None, Some(2)]);
    }
}
