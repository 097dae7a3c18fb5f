//! How much is measured, and how long anything may take.

use std::time::Duration;

/// A contender that needs longer than this for one turn is reported as not finished.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Hand-offs to one waiter.
    pub(crate) hand_offs: usize,
    /// Queues of waiters that are drained, and counters that are counted up.
    pub(crate) turns: usize,
    /// Holders that are killed.
    pub(crate) kills: usize,
    /// How long the hot key is contended before it is measured, and while it is.
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
    complete: bool,
}

impl Plan {
    /// `--quick` is for a look; only the whole plan rewrites the table and the picture.
    pub(crate) fn from_arguments() -> Self {
        if std::env::args().any(|argument| argument == "--quick") { Self::quick() } else { Self::whole() }
    }

    pub(crate) const fn is_complete(&self) -> bool {
        self.complete
    }

    const fn quick() -> Self {
        let (warm_up, window) = (Duration::from_secs(1), Duration::from_secs(3));
        Self { hand_offs: 12, turns: 2, kills: 2, warm_up, window, complete: false }
    }

    const fn whole() -> Self {
        let (warm_up, window) = (Duration::from_secs(2), Duration::from_secs(15));
        Self { hand_offs: 200, turns: 15, kills: 12, warm_up, window, complete: true }
    }
}

/// Until a waiter certainly waits; of random length, since a poller's delay depends on its phase.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(100..250))).await;
}
