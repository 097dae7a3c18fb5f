//! Body that runs under the lock. It increments a counter in two steps, so that a concurrent body would lose an
//! increment.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Counter that is exact only if the lock excludes concurrent bodies.
#[derive(Default)]
pub(crate) struct Counter {
    value: AtomicU64,
    /// Number of bodies that have run, counted atomically.
    bodies: AtomicU64,
    /// Total duration of all bodies.
    nanoseconds: AtomicU64,
}

impl Counter {
    /// Reads the counter, waits for the length of the body, and writes the counter.
    pub(crate) async fn increment(&self, body: Duration) {
        let begun = Instant::now();
        let value = self.value.load(SeqCst);
        if body.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(body).await;
        }
        self.value.store(value + 1, SeqCst);
        self.bodies.fetch_add(1, SeqCst);
        let lasted = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(lasted, SeqCst);
    }

    pub(crate) fn bodies(&self) -> u64 {
        self.bodies.load(SeqCst)
    }

    /// Returns the mean duration of a body, which is longer than requested because timers fire late. Returns `None`
    /// before the first body has ended.
    pub(crate) fn mean_body(&self) -> Option<Duration> {
        self.nanoseconds.load(SeqCst).checked_div(self.bodies()).map(Duration::from_nanos)
    }

    /// Returns the number of overwritten increments. Each of them is a violation of mutual exclusion.
    pub(crate) fn lost(&self) -> u64 {
        self.bodies().abs_diff(self.value.load(SeqCst))
    }
}
