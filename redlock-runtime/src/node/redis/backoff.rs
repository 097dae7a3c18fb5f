//! Pauses between attempts to connect: short at the start of an outage, then longer and longer. A refusal that no retry can fix causes the
//! longest pause at once.

use crate::error::NodeError;
use std::mem;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Pause before a new attempt while an outage is short. Too small: more useless attempts at a server that is just starting. Too large: the
/// holder of a lock that the server has forgotten learns of the loss long after the next holder has taken it.
const FIRST_PAUSE: Duration = Duration::from_millis(40);
/// Duration of a short outage, such as a restart of the server or a brief network failure. Too small: a recovered server is found late. Too
/// large: a permanent outage costs more attempts.
const SHORT_OUTAGE: Duration = Duration::from_secs(5);
/// Maximum pause. Too small: a dead server costs more attempts. Too large: a recovered server stays unused for longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Minimum life of a connection that ends the previous outage. Too small: a server that accepts and hangs up is tried again and again. Too
/// large: a server with short-lived connections is given up although it is usable.
const LASTING: Duration = Duration::from_millis(100);

/// Length of the pause before the next attempt.
pub(super) struct Backoff {
    pause: Duration,
    /// Start of the current outage: the time since when no connection has lasted.
    outage: Instant,
    /// Start of the connection, if the last attempt made one.
    connected: Option<Instant>,
    /// Effect of the last failure on the next pause.
    haste: Haste,
}

/// Benefit of an early retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Haste {
    /// The server may be back in a moment.
    Useful,
    /// The server has no room, and each retry takes some of it.
    Harmful,
    /// The server refuses until its settings or those of this process are changed.
    Useless,
}

impl Haste {
    fn after(error: &NodeError) -> Self {
        match error {
            NodeError::Refused(answer) if answer.starts_with("ERR max number of clients") => Self::Harmful,
            // A promotion fixes it.
            NodeError::Replica => Self::Useful,
            error if error.is_transient() => Self::Useful,
            _ => Self::Useless,
        }
    }
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { pause: FIRST_PAUSE, outage: Instant::now(), connected: None, haste: Haste::Useful }
    }

    /// Records a new connection.
    pub(super) fn connected(&mut self) {
        (self.connected, self.haste) = (Some(Instant::now()), Haste::Useful);
    }

    /// Records that the last attempt has failed with `error`.
    pub(super) fn failed(&mut self, error: &NodeError) {
        self.haste = Haste::after(error);
    }

    /// Waits before the next attempt.
    pub(super) async fn pause(&mut self) {
        let pause = self.next_pause(Instant::now());
        sleep(jittered(pause)).await;
    }

    /// Returns the maximum length of the next pause.
    fn next_pause(&mut self, now: Instant) -> Duration {
        if self.connected.take().is_some_and(|since| now.duration_since(since) >= LASTING) {
            self.outage = now;
        }
        self.pause = match mem::replace(&mut self.haste, Haste::Useful) {
            Haste::Useless => LONGEST_PAUSE,
            Haste::Useful if now.duration_since(self.outage) < SHORT_OUTAGE => FIRST_PAUSE,
            Haste::Useful | Haste::Harmful => (self.pause * 2).min(LONGEST_PAUSE),
        };
        self.pause
    }
}

/// Returns between half of `pause` and all of it, so that a restarted server does not meet all its clients at once.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + 0.5 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reconnects_are_frequent_in_short_outages_and_rare_in_long_ones() {
        let (mut backoff, mut now) = (Backoff::new(), Instant::now());
        let begun = now;
        let mut pauses = Vec::new();
        while now.duration_since(begun) < 3 * SHORT_OUTAGE {
            pauses.push(backoff.next_pause(now));
            now += *pauses.last().unwrap();
        }
        let short = pauses.iter().take_while(|pause| **pause == FIRST_PAUSE).count();
        assert!(FIRST_PAUSE * u32::try_from(short).unwrap() >= SHORT_OUTAGE, "{pauses:?}");
        assert!(pauses.is_sorted() && pauses.last() == Some(&LONGEST_PAUSE), "{pauses:?}");
    }

    #[test]
    fn permanent_refusals_get_longer_pauses_at_once() {
        let refused = |answer: &str| NodeError::Refused(answer.into());
        let full = [80, 160, 320, 640, 1000, 1000];
        let table = [
            (refused("WRONGPASS: that user or password is wrong"), [1000; 6]),
            (NodeError::Unsupported("is a Sentinel".into()), [1000; 6]),
            (NodeError::Tls("the certificate is not trusted".into()), [1000; 6]),
            (refused("ERR max number of clients reached"), full),
            (refused("LOADING Redis is loading the dataset in memory"), [40; 6]),
            (NodeError::Replica, [40; 6]),
            (NodeError::Unreachable("Connection refused".into()), [40; 6]),
        ];
        for (error, expected) in table {
            let (mut backoff, now) = (Backoff::new(), Instant::now());
            let pauses = expected.map(|_| {
                backoff.failed(&error);
                backoff.next_pause(now).as_millis()
            });
            assert_eq!(pauses, expected, "{error}");
            assert_eq!(backoff.next_pause(now), FIRST_PAUSE, "another failure after {error}");
        }
    }

    #[test]
    fn only_a_lasting_connection_ends_an_outage() {
        for (lasts, is_over) in [(LASTING / 2, false), (LASTING, true)] {
            let (mut backoff, begun) = (Backoff::new(), Instant::now());
            let mut now = begun;
            while now.duration_since(begun) < 2 * SHORT_OUTAGE {
                now += backoff.next_pause(now);
            }
            backoff.connected = Some(now);
            let pause = backoff.next_pause(now + lasts);
            assert_eq!(pause == FIRST_PAUSE, is_over, "{lasts:?}: {pause:?}");
        }
    }
}
