//! The body under the lock: a counter that is read and written in two steps, so that a second body beside it loses one.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// A counter that only a lock keeps right.
#[derive(Default)]
pub(crate) struct Counter {
    value: AtomicU64,
    /// Bodies that have run, counted in one step.
    bodies: AtomicU64,
    /// Of all bodies together.
    nanoseconds: AtomicU64,
}

impl Counter {
    /// The body: reads, takes its time, writes.
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

    /// How long a body really was: a timer ends later than it was asked to. `None` before the first has ended.
    pub(crate) fn mean_body(&self) -> Option<Duration> {
        self.nanoseconds.load(SeqCst).checked_div(self.bodies()).map(Duration::from_nanos)
    }

    /// Increments that another body has overwritten: each is a breach of mutual exclusion.
    pub(crate) fn lost(&self) -> u64 {
        self.bodies().abs_diff(self.value.load(SeqCst))
    }
}
