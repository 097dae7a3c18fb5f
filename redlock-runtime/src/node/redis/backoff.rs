//! Pauses between tries to connect: longer and longer, until a connection lasts.

use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The longest that making a connection may take, from the name look-up to the last step. With less, a server far away
/// would never be reached; with more, one that swallows all packets would look as if it were starting for longer.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause before the first new try, which doubles with each try. With less, a server that is just starting is asked
/// in vain more often; with more, it is missing for longer after a broken connection.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause. With less, a dead server costs more tries; with more, it is missing for longer after it has come
/// back.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long to wait before the next try.
pub(super) struct Backoff {
    pause: Duration,
    /// Since when there is a connection, if the last try made one.
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
        // A connection that breaks at once is no success: pauses go on growing, or a server that accepts and hangs up
        // would be asked again and again without a pause.
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
