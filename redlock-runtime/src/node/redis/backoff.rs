//! Pauses between tries to connect: longer and longer, until a connection lasts.

use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The longest that making a connection may take, from the name look-up to the last step.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Backoff {
    pause: Duration,
    connected: Option<Instant>,
}

impl Backoff {
    pub(super) const fn new() -> Self {
        Self { pause: FIRST_PAUSE, connected: None }
    }

    /// A connection is made.
    pub(super) fn connected(&mut self) {
        self.connected = Some(Instant::now());
    }

    /// Waits before the next try.
    pub(super) async fn pause(&mut self) {
        // A connection that breaks at once is no success.
        if self.connected.take().is_some_and(|since| since.elapsed() > LONGEST_PAUSE) {
            self.pause = FIRST_PAUSE;
        }
        sleep(jittered(self.pause)).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

/// Between half of `pause` and all of it, so that a restarted server does not meet all its clients at once.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + 0.5 * fastrand::f64())
}
