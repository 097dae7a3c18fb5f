//! Requests for comparisons of settings on one connection, and the outcome of the last one.
//!
//! Any task can request a comparison. One task of the connection makes them, so that two never overlap.

use crate::node::shared_settings::OtherSettings;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Notify, watch};

/// Comparisons on one connection, which are numbered.
#[derive(Debug, Default)]
pub(super) struct Comparisons {
    due: Notify,
    begun: AtomicU64,
    /// Number and outcome of the last one.
    done: watch::Sender<(u64, Vec<OtherSettings>)>,
}

impl Comparisons {
    /// Requests a comparison, and does not wait for it.
    pub(super) fn request(&self) {
        self.due.notify_one();
    }

    /// Returns the differing settings of other processes, from a comparison that begins after this call. Never returns if the connection has
    /// ended.
    pub(super) async fn next(&self) -> Vec<OtherSettings> {
        let next = self.begun.load(Ordering::Relaxed) + 1;
        let mut done = self.done.subscribe();
        self.request();
        let outcome = done.wait_for(|(number, _)| *number >= next).await.map(|outcome| outcome.1.clone());
        match outcome {
            Ok(others) => others,
            // The sender lives as long as `self`.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits for a request. Returns the number of the comparison that begins now.
    pub(super) async fn requested(&self) -> u64 {
        self.due.notified().await;
        self.begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Records the outcome of the comparison with this number.
    pub(super) fn finished(&self, number: u64, others: Vec<OtherSettings>) {
        self.done.send_replace((number, others));
    }
}
