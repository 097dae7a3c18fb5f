//! What is said in the log about a connection that cannot be made: each thing when it begins, and then now and then.

use std::time::Duration;
use tokio::time::Instant;

/// The same thing is not said again for so long. Smaller, the log of a service says nothing else while a server is down;
/// larger, whoever looks into it misses that the server still is.
const PAUSE: Duration = Duration::from_secs(60);
/// How many things are remembered. Fewer, and a server that breaks off in turns for several reasons is named each time.
const MOST: usize = 8;

/// What was said of late, and how often the same has happened since.
#[derive(Default)]
pub(super) struct Complaints(Vec<Complaint>);

struct Complaint {
    what: String,
    said: Instant,
    times: u64,
}

impl Complaints {
    /// It has happened again. Returns how often since it was said the last time, if it is to be said now.
    pub(super) fn times(&mut self, what: &str) -> Option<u64> {
        let now = Instant::now();
        let Some(known) = self.0.iter_mut().find(|known| known.what == what) else {
            self.0.truncate(MOST - 1);
            self.0.insert(0, Complaint { what: what.to_owned(), said: now, times: 0 });
            return Some(1);
        };
        known.times += 1;
        let is_due = now.duration_since(known.said) >= PAUSE;
        is_due.then(|| {
            known.said = now;
            std::mem::take(&mut known.times)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn the_same_is_said_once_a_minute() {
        let mut complaints = Complaints::default();
        assert_eq!(complaints.times("refused"), Some(1));
        for _ in 0..59 {
            advance(Duration::from_secs(1)).await;
            assert_eq!(complaints.times("refused"), None);
        }
        assert_eq!(complaints.times("broken"), Some(1), "something else");
        advance(Duration::from_secs(1)).await;
        assert_eq!(complaints.times("refused"), Some(60));
        assert_eq!(complaints.times("refused"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn many_things_take_no_more_memory() {
        let mut complaints = Complaints::default();
        for i in 0..10 * MOST {
            assert_eq!(complaints.times(&i.to_string()), Some(1));
        }
        assert_eq!(complaints.0.len(), MOST);
    }
}
