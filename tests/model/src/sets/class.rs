//! As what a request has one of its names, as the runtime's `lock/class` has it.

/// The modes of multi-granularity locking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Nobody else has anything of it.
    Exclusive,
    /// Others may look at it as well.
    Shared,
    /// Something below it is exclusive.
    IntentExclusive,
    /// Something below it is shared.
    IntentShared,
}

impl Class {
    /// Whether the name is only on the way to another one.
    #[must_use]
    pub const fn is_intent(self) -> bool {
        matches!(self, Self::IntentExclusive | Self::IntentShared)
    }

    /// What is left when whoever has the name goes on as a reader.
    #[must_use]
    pub const fn lowered(self) -> Self {
        match self {
            Self::Exclusive | Self::Shared => Self::Shared,
            Self::IntentExclusive | Self::IntentShared => Self::IntentShared,
        }
    }

    /// Whether two requests cannot have the name at the same time.
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
