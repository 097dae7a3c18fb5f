//! Lock modes of a request on one of its names, equal to the runtime's `lock/class`.

/// The modes of multi-granularity locking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Excludes all other requests.
    Exclusive,
    /// Allows other readers.
    Shared,
    /// An exclusive request is below this name.
    IntentExclusive,
    /// A shared request is below this name.
    IntentShared,
}

impl Class {
    /// Returns `true` if the name is only an ancestor of the requested one.
    #[must_use]
    pub const fn is_intent(self) -> bool {
        matches!(self, Self::IntentExclusive | Self::IntentShared)
    }

    /// Returns the mode after a downgrade to a reader.
    #[must_use]
    pub const fn lowered(self) -> Self {
        match self {
            Self::Exclusive | Self::Shared => Self::Shared,
            Self::IntentExclusive | Self::IntentShared => Self::IntentShared,
        }
    }

    /// Returns `true` if two requests cannot hold the name at the same time.
    #[must_use]
    pub const fn conflicts_with(self, other: Self) -> bool {
        match self {
            Self::Exclusive => true,
            Self::Shared => matches!(other, Self::Exclusive | Self::IntentExclusive),
            Self::IntentExclusive => matches!(other, Self::Exclusive | Self::Shared),
            Self::IntentShared => matches!(other, Self::Exclusive),
        }
    }
}
