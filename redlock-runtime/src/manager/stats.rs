//! What a manager has counted.

use super::{LingerStats, LockManager};
use crate::client::node_handle::NodeHandle;
use crate::stats::{NodeStats, SiteStats};
use std::sync::atomic::Ordering;

/// What became of the releases of a manager, counted per node and summed since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReleaseStats {
    /// The lock was not ours any more: its lease had run out, or somebody deleted the key.
    pub not_owner: u64,
    /// Sent again, because the connection broke before the answer, or the server was busy or failing over.
    pub sent_again: u64,
    /// Given up, because the key had expired by itself before the node could be reached, or the node refused.
    pub abandoned: u64,
    /// Of the bodies that are not stopped (`on_lost = continue`), those whose lock was lost before they were done: their
    /// releases had nothing to give back. Each is a warning in the log as well.
    pub outlived: u64,
}

/// What a manager has counted since it was made, as [`LockManager::stats`] tells it.
///
/// # Examples
/// ```
/// # use redlock_runtime::{LockError, LockManager, LockRequest};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let request = || LockRequest::new("order:7").label("order:{id}");
/// let (before, guard) = (manager.stats(), manager.acquire(request()).await?);
/// let site = &manager.stats().since(&before).sites[0];
/// assert_eq!((site.site.to_string(), site.acquired, site.held_now), ("order:{id}".to_owned(), 1, 1));
/// # guard.release().await }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The sites that have asked for locks, by template and line: 4096 at most, and those that come after them as one.
    pub sites: Vec<SiteStats>,
    /// The nodes, in the order in which they were given.
    pub nodes: Vec<NodeStats>,
    /// What became of the releases.
    pub releases: ReleaseStats,
    /// What became of locks that were kept for a next call.
    pub linger: LingerStats,
}

impl Stats {
    /// What was counted after `earlier`, of the same manager. What is said of now, such as
    /// [`held_now`](SiteStats::held_now), stays as it is.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        // Both are sorted by their sites. Sites only come.
        let mut before = earlier.sites.iter().peekable();
        let sites = self.sites.iter().map(|stats| {
            while before.next_if(|before| before.site < stats.site).is_some() {}
            before
                .next_if(|before| before.site == stats.site)
                .map_or_else(|| stats.clone(), |before| stats.since(before))
        });
        // Two nodes may have one name, and all stand where they stood.
        let nodes = self.nodes.iter().enumerate().map(|(index, stats)| {
            let before = earlier.nodes.get(index).filter(|before| before.node == stats.node);
            before.map_or_else(|| stats.clone(), |before| stats.since(before))
        });
        Self {
            sites: sites.collect(),
            nodes: nodes.collect(),
            releases: self.releases.since(earlier.releases),
            linger: self.linger.since(earlier.linger),
        }
    }
}

impl ReleaseStats {
    const fn since(self, earlier: Self) -> Self {
        Self {
            not_owner: self.not_owner.saturating_sub(earlier.not_owner),
            sent_again: self.sent_again.saturating_sub(earlier.sent_again),
            abandoned: self.abandoned.saturating_sub(earlier.abandoned),
            outlived: self.outlived.saturating_sub(earlier.outlived),
        }
    }
}

impl LockManager {
    /// What became of the calls, by where they were made; what the nodes were asked; and what became of releases and of locks
    /// that were kept for a next call.
    ///
    /// It reads counters, sends nothing, and waits for nobody: for each scrape of a monitor, or for each second of a picture.
    /// The numbers are of about one moment, while calls go on. The examples turn them into metrics of Prometheus and of
    /// OpenTelemetry.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            sites: self.shared().sites.read(),
            nodes: self.shared().nodes.iter().map(|node| node.node().stats()).collect(),
            releases: self.releases(),
            linger: self.lingering(),
        }
    }

    pub(super) fn releases(&self) -> ReleaseStats {
        let outlived = self.shared().outlived.load(Ordering::Relaxed);
        let mut stats = ReleaseStats { outlived, ..ReleaseStats::default() };
        for ledger in self.shared().nodes.iter().flat_map(NodeHandle::ledgers) {
            stats.not_owner += ledger.not_owner.load(Ordering::Relaxed);
            stats.sent_again += ledger.sent_again.load(Ordering::Relaxed);
            stats.abandoned += ledger.abandoned.load(Ordering::Relaxed);
        }
        stats
    }
}
