//! What a manager holds.

use super::LockManager;
use crate::client::acquisition::{self, Acquisition};
use crate::lock::{LockKey, Mode, OwnerToken};
use crate::stats::LockSite;
use std::time::Duration;

/// A lock that a manager holds, as [`LockManager::held`] tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holding {
    /// What is locked. Where that is [several](crate::LockRequest::all) keys, what they are called together.
    pub key: LockKey,
    /// Each of the keys that were asked for.
    pub keys: Vec<LockKey>,
    /// Whether it is for one call alone or shared with others.
    pub mode: Mode,
    /// Under which token the nodes have it.
    pub token: OwnerToken,
    /// Where the call has asked for it that has it now.
    pub site: LockSite,
    /// For how long that call has had it.
    pub held_for: Duration,
    /// How much longer it is provably held; zero when it is lost, by time or because the nodes have taken it away, and the call
    /// has not ended.
    pub remaining: Duration,
}

impl LockManager {
    /// The locks that calls of this manager have now, those held the longest first.
    ///
    /// A lock that calls of this manager [share](crate::LockRequest::shared) is here once for each of them.
    /// [Idle](crate::LockManagerBuilder::linger) locks are left out, and nested calls, which are in the lock of another one. A
    /// guard that was leaked is here until another call of the manager takes its place. Each manager tells of its own; what
    /// others hold, the nodes know.
    ///
    /// It has the keys as they are, also with [`redact_keys`](crate::LockManagerBuilder::redact_keys): whoever shows them decides.
    ///
    /// It sends nothing. It takes the mutex of each line for a moment, and so a time that grows with the number of locks.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire("order:7").await?;
    /// let held = manager.held();
    /// assert_eq!(held.len(), 1);
    /// println!("{} since {:?}, asked for at {}", held[0].key, held[0].held_for, held[0].site);
    /// guard.release().await?;
    /// assert!(manager.held().is_empty());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn held(&self) -> Vec<Holding> {
        let holding = |acquisition: &Acquisition, held: acquisition::Holding| {
            let site = self.shared().sites.get(held.site)?.site();
            let keys = acquisition.keys().cloned().collect();
            let (key, mode, token) = (acquisition.key().clone(), acquisition.mode(), *acquisition.token());
            Some(Holding { key, keys, mode, token, site, held_for: held.held_for, remaining: held.remaining })
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
