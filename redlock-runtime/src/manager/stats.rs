//! Statistics of a manager.

use super::{LingerStats, LockManager};
use crate::client::node_handle::NodeHandle;
use crate::stats::{NodeStats, SiteStats};
use std::sync::atomic::Ordering;

/// Outcomes of the releases of a manager, counted for each node and summed since the manager was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ReleaseStats {
    /// Number of releases that found another owner or no key: the lease had ended, or the key was deleted.
    pub not_owner: u64,
    /// Number of releases that were sent again: the connection broke before the reply, or the server was busy or failing over.
    pub retried: u64,
    /// Number of releases that were given up: the key expired before the node could be reached, or the node refused.
    pub abandoned: u64,
    /// Number of bodies with `on_lost = continue` whose lock was lost before they ended, so that there was nothing to release. Each is
    /// logged as a warning, too.
    pub expired: u64,
}

/// Statistics of a manager since it was built, as [`LockManager::stats`] returns them.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stats {
    /// Call sites that have requested locks, sorted by template and line: the first 4096, and one entry for all others.
    pub sites: Vec<SiteStats>,
    /// Nodes, in the order of the manager's configuration.
    pub nodes: Vec<NodeStats>,
    /// Outcomes of the releases.
    pub releases: ReleaseStats,
    /// Outcomes of lingering locks.
    pub linger: LingerStats,
}

impl Stats {
    /// Returns the counts after `earlier`, which must be of the same manager. Present values, such as
    /// [`held_now`](SiteStats::held_now), stay as they are.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        // Both are sorted by site, and no site is ever removed.
        let mut before = earlier.sites.iter().peekable();
        let sites = self.sites.iter().map(|stats| {
            while before.next_if(|before| before.site < stats.site).is_some() {}
            before
                .next_if(|before| before.site == stats.site)
                .map_or_else(|| stats.clone(), |before| stats.since(before))
        });
        // Nodes are compared by index, because two nodes may have the same name.
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
            retried: self.retried.saturating_sub(earlier.retried),
            abandoned: self.abandoned.saturating_sub(earlier.abandoned),
            expired: self.expired.saturating_sub(earlier.expired),
        }
    }
}

impl LockManager {
    /// Returns counts and durations of calls by call site, of commands by node, of releases, and of lingering locks.
    ///
    /// It reads counters and sends no command, so it can be called for every scrape of a monitoring system. While calls run, the numbers
    /// belong to about the same moment. The examples export them to Prometheus and OpenTelemetry.
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
        let expired = self.shared().outlived.load(Ordering::Relaxed);
        let mut stats = ReleaseStats { expired, ..ReleaseStats::default() };
        for ledger in self.shared().nodes.iter().flat_map(NodeHandle::ledgers) {
            stats.not_owner += ledger.not_owner.load(Ordering::Relaxed);
            stats.retried += ledger.sent_again.load(Ordering::Relaxed);
            stats.abandoned += ledger.abandoned.load(Ordering::Relaxed);
        }
        stats
    }
}
