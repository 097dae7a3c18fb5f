//! Whether a lock is for one call alone.

/// Whether a lock is for one call alone or shared with others.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// One call has the lock, and no other at the same time.
    #[default]
    Exclusive,
    /// Calls that share the lock have it together, and none that wants it for itself at the same time.
    Shared,
}
