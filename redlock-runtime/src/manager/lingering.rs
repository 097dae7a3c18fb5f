//! How lingering locks have paid.

use super::LockManager;

/// What became of the locks that a manager kept for a next call ([`linger`](crate::LockManagerBuilder::linger)), summed since
/// the start.
///
/// `kept` is the sum of the others and of those that are idle at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LingerStats {
    /// Stayed held when their call was over.
    pub kept: u64,
    /// Of those, the ones that the next call of this manager has taken over, without a command.
    pub retaken: u64,
    /// Given back because somebody else asked. Where this is more than a quarter of `retaken`, lingering costs more than it
    /// saves.
    pub recalled: u64,
    /// Given back although nobody had asked: their time was over, there were too many, the manager ended, or the call that
    /// came wanted another `ttl`.
    pub expired: u64,
}

impl LingerStats {
    pub(super) const fn since(self, earlier: Self) -> Self {
        Self {
            kept: self.kept.saturating_sub(earlier.kept),
            retaken: self.retaken.saturating_sub(earlier.retaken),
            recalled: self.recalled.saturating_sub(earlier.recalled),
            expired: self.expired.saturating_sub(earlier.expired),
        }
    }
}

impl LockManager {
    pub(super) fn lingering(&self) -> LingerStats {
        let [kept, retaken, recalled, expired] = self.local.idle_counters();
        LingerStats { kept, retaken, recalled, expired }
    }
}
