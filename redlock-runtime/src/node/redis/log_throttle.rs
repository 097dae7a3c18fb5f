//! Throttle for the log events about a connection: each state when it begins, then a periodic reminder, and the final state when it lasts.

use std::time::Duration;
use tokio::time::Instant;

/// Minimum time between two equal events. Too small: the log is full of one event while a server is down. Too large: a reader of the log
/// does not see that the server is still down.
const PAUSE: Duration = Duration::from_secs(60);
/// Maximum number of remembered causes. Too small: a server that fails for several causes in turns is logged each time.
const MOST: usize = 8;
/// Time after which a state is logged again even though it was logged recently, if the opposite was logged in between. Too small: an
/// unstable connection is logged each time. Too large: the last event in the log is wrong for longer.
pub(super) const LASTING: Duration = Duration::from_secs(1);

/// Recently logged causes, and how often each has happened since.
#[derive(Default)]
pub(super) struct LogThrottle {
    of_late: Vec<Complaint>,
    /// The event that there is a connection.
    up: Option<Complaint>,
    /// `true` if there is a connection, and the start of this state.
    present: Option<(bool, Instant)>,
    /// The state in the last event: `true` for a connection.
    said_last: Option<bool>,
}

struct Complaint {
    what: String,
    said: Instant,
    times: u64,
}

impl Complaint {
    /// Creates the record of an event that is logged now.
    fn new(what: &str, now: Instant) -> Self {
        Self { what: what.to_owned(), said: now, times: 0 }
    }

    /// Counts an event. Returns its number since it was last logged, if that was long ago or it `is_owed`.
    fn again(&mut self, is_owed: bool, now: Instant) -> Option<u64> {
        self.times += 1;
        self.due(is_owed, now)
    }

    fn due(&mut self, is_owed: bool, now: Instant) -> Option<u64> {
        let is_due = is_owed || now.duration_since(self.said) >= PAUSE;
        is_due.then(|| {
            self.said = now;
            std::mem::take(&mut self.times)
        })
    }
}

impl LogThrottle {
    /// Records a failure to connect because of `what`. Returns its number since it was last logged, if it should be logged now.
    pub(super) fn times(&mut self, what: &str) -> Option<u64> {
        let (now, is_owed) = self.is(false);
        if let Some(known) = self.of_late.iter_mut().find(|known| known.what == what) {
            let times = known.again(is_owed, now);
            return self.says(false, times);
        }
        self.of_late.truncate(MOST - 1);
        self.of_late.insert(0, Complaint::new(what, now));
        self.says(false, Some(1))
    }

    /// Records a new connection; returns a number like [`times`](Self::times).
    pub(super) fn count_connection(&mut self) -> Option<u64> {
        let (now, is_owed) = self.is(true);
        if let Some(known) = &mut self.up {
            let times = known.again(is_owed, now);
            return self.says(true, times);
        }
        self.up = Some(Complaint::new("", now));
        self.says(true, Some(1))
    }

    /// Records that the connection still exists. Returns the number of connections since this was last logged, if it should be logged now.
    pub(super) fn still_up(&mut self) -> Option<u64> {
        let (now, is_owed) = self.is(true);
        let times = self.up.as_mut().filter(|_| is_owed).and_then(|known| known.due(true, now));
        self.says(true, times)
    }

    /// Returns `true` if the last event reports no connection, although there is one.
    pub(super) fn has_unreported_connection(&self) -> bool {
        self.said_last == Some(false) && self.present.is_some_and(|(is_up, _)| is_up)
    }

    /// Records the current state. Returns the time, and `true` if the state has lasted for a while and the last event reported the
    /// opposite.
    fn is(&mut self, is_up: bool) -> (Instant, bool) {
        let now = Instant::now();
        let since = self.present.filter(|(was_up, _)| *was_up == is_up).map_or(now, |(_, since)| since);
        self.present = Some((is_up, since));
        (now, self.said_last == Some(!is_up) && now.duration_since(since) >= LASTING)
    }

    fn says(&mut self, is_up: bool, times: Option<u64>) -> Option<u64> {
        if times.is_some() {
            self.said_last = Some(is_up);
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn equal_message_is_logged_once_per_minute() {
        let mut log_throttle = LogThrottle::default();
        assert_eq!(log_throttle.times("refused"), Some(1));
        for _ in 0..59 {
            advance(Duration::from_secs(1)).await;
            assert_eq!(log_throttle.times("refused"), None);
        }
        assert_eq!(log_throttle.times("broken"), Some(1), "something else");
        advance(Duration::from_secs(1)).await;
        assert_eq!(log_throttle.times("refused"), Some(60));
        assert_eq!(log_throttle.times("refused"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn log_throttle_memory_is_bounded() {
        let mut log_throttle = LogThrottle::default();
        for i in 0..10 * MOST {
            assert_eq!(log_throttle.times(&i.to_string()), Some(1));
        }
        assert_eq!(log_throttle.of_late.len(), MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn flapping_connection_is_not_logged_but_its_final_state_is() {
        let mut log_throttle = LogThrottle::default();
        assert_eq!((log_throttle.count_connection(), log_throttle.has_unreported_connection()), (Some(1), false));
        assert_eq!(log_throttle.times("broke"), Some(1));
        // The connection is unstable.
        for _ in 0..5 {
            assert_eq!((log_throttle.count_connection(), log_throttle.has_unreported_connection()), (None, true));
            advance(LASTING / 2).await;
            assert_eq!((log_throttle.still_up(), log_throttle.times("broke")), (None, None));
        }
        assert_eq!(log_throttle.count_connection(), None);
        advance(LASTING).await;
        assert_eq!(
            (log_throttle.still_up(), log_throttle.has_unreported_connection()),
            (Some(6), false),
            "it has come to stay"
        );
        assert_eq!(log_throttle.still_up(), None);
        // The connection is lost, by a cause that was logged a few seconds ago.
        assert_eq!(log_throttle.times("broke"), None);
        advance(LASTING).await;
        assert_eq!(log_throttle.times("broke"), Some(7));
        for cause in 0..2 * MOST {
            assert_eq!(log_throttle.times(&cause.to_string()), Some(1));
        }
        assert_eq!(log_throttle.count_connection(), None, "many causes do not make a connection news");
    }
}
