//! Locks that a manager holds.

use super::LockManager;
use crate::client::acquisition::{self, Acquisition};
use crate::lock::{LockKey, Mode, OwnerToken};
use crate::stats::LockSite;
use std::time::Duration;

/// Lock that a manager holds, as [`LockManager::held_locks`] returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalLock {
    /// Key of the lock. For [several](crate::LockRequest::all) keys, their common name.
    pub key: LockKey,
    /// Keys of the request.
    pub keys: Vec<LockKey>,
    /// Mode of the lock.
    pub mode: Mode,
    /// Token of the lock at the nodes.
    pub token: OwnerToken,
    /// Call site of the present holder.
    pub site: LockSite,
    /// Time since the present holder acquired the lock.
    pub held_for: Duration,
    /// Remaining lease. Zero if the lease has ended or the nodes have taken the lock away, and the call still runs.
    pub remaining: Duration,
}

impl LockManager {
    /// Returns the locks that calls of this manager hold now. The longest-held lock comes first.
    ///
    /// - A [shared](crate::LockRequest::shared) lock is listed once for each call that holds it.
    /// - [Lingering](crate::LockManagerBuilder::linger) locks are not listed, because no call holds them.
    /// - Nested calls are not listed: they run in the lock of their caller.
    /// - A leaked guard is listed, even after its lease has ended, until another call of the manager takes over the lock.
    ///
    /// The keys are not redacted, even with [`redact_keys`](crate::LockManagerBuilder::redact_keys). Locks of other managers are not
    /// listed; see [`list`](Self::list).
    ///
    /// It sends no command. It takes the mutex of each key's local queue for a moment, so its time grows with the number of locks.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire("order:7").await?;
    /// let held = manager.held_locks();
    /// assert_eq!(held.len(), 1);
    /// println!("{} since {:?}, asked for at {}", held[0].key, held[0].held_for, held[0].site);
    /// guard.release().await?;
    /// assert!(manager.held_locks().is_empty());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn held_locks(&self) -> Vec<LocalLock> {
        let holding = |acquisition: &Acquisition, held: acquisition::Holding| {
            let site = self.shared().sites.get(held.site)?.site();
            let keys = acquisition.keys().cloned().collect();
            let (key, mode, token) = (acquisition.key().clone(), acquisition.mode(), *acquisition.token());
            Some(LocalLock { key, keys, mode, token, site, held_for: held.held_for, remaining: held.remaining })
        };
        let mut all = Vec::new();
        for acquisition in self.local.acquisitions() {
            let held = acquisition.holdings().unwrap_or_else(|| acquisition.holding().into_iter().collect());
            all.extend(held.into_iter().filter_map(|held| holding(&acquisition, held)));
        }
        all.sort_by_key(|held| std::cmp::Reverse(held.held_for));
        all
    }
}
