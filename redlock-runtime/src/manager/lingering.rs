//! Statistics about lingering locks.

use super::LockManager;

/// Outcomes of [lingering](crate::LockManagerBuilder::linger) locks: idle locks that a manager keeps for the next call. Summed since
/// the manager was built.
///
/// `started` is the sum of the other numbers and of the locks that linger now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LingerStats {
    /// Number of locks that stayed held after their call.
    pub started: u64,
    /// Number of these locks that the next call of this manager used, without a command.
    pub reused: u64,
    /// Number of these locks that were released because another process asked for them. If this is more than a quarter of `reused`,
    /// lingering costs more than it saves.
    pub reclaimed: u64,
    /// Number of these locks that were released without a request: their time ended, there were too many, the manager was shut down, or
    /// the next call had another `ttl`.
    pub expired: u64,
}

impl LingerStats {
    pub(super) const fn since(self, earlier: Self) -> Self {
        Self {
            started: self.started.saturating_sub(earlier.started),
            reused: self.reused.saturating_sub(earlier.reused),
            reclaimed: self.reclaimed.saturating_sub(earlier.reclaimed),
            expired: self.expired.saturating_sub(earlier.expired),
        }
    }
}

impl LockManager {
    pub(super) fn lingering(&self) -> LingerStats {
        let [started, reused, reclaimed, expired] = self.local.idle_counters();
        LingerStats { started, reused, reclaimed, expired }
    }
}
