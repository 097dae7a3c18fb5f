//! The body under the lock: a counter that is read and written in two steps, so that a second body beside it loses one.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// A counter that only a lock keeps right.
#[derive(Default)]
pub(crate) struct Counter {
    value: AtomicU64,
    /// Bodies that have run, counted in one step.
    bodies: AtomicU64,
}

impl Counter {
    /// The body: reads, takes its time, writes.
    pub(crate) async fn increment(&self, body: Duration) {
        let value = self.value.load(SeqCst);
        if body.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(body).await;
        }
        self.value.store(value + 1, SeqCst);
        self.bodies.fetch_add(1, SeqCst);
    }

    pub(crate) fn bodies(&self) -> u64 {
        self.bodies.load(SeqCst)
    }

    /// Increments that another body has overwritten: each is a breach of mutual exclusion.
    pub(crate) fn lost(&self) -> u64 {
        self.bodies().abs_diff(self.value.load(SeqCst))
    }
}
