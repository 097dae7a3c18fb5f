//! Extent of the measurements, and their time limit.

use std::time::Duration;

/// Time limit of one turn. A contender that needs longer is reported as not finished.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Number of hand-offs to a single waiter.
    pub(crate) hand_offs: usize,
    /// Number of drained queues, and of turns with a local counter.
    pub(crate) turns: usize,
    /// Number of killed holders.
    pub(crate) kills: usize,
    /// Duration of the contention on the hot key before the measurement. `window` is the measured time.
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
    complete: bool,
}

impl Plan {
    /// Reads the arguments. `--quick` runs a short plan; only the whole plan writes the table and the picture.
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

/// Waits until a started waiter is queued. The pause is random, because a poller's delay depends on its phase.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(100..250))).await;
}
