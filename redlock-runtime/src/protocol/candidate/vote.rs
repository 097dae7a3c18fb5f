//! Whose the lock is at a node, and until when that is proven.

use crate::time::clock::Instant;

/// Whose the lock is at a node, as far as the candidate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// Not heard of yet.
    Open,
    /// The node holds the lock for us as a lease, which it provably keeps until then.
    Granted { lease_end: Instant },
    /// The node was handed to us as a claim, which it provably keeps until then, if that is known. An extension makes a lease
    /// of it.
    Claimed { until: Option<Instant> },
    /// Somebody else has it there, whose lease ends then as the node has told it last; or nobody does.
    Taken { until: Option<Instant> },
    /// No answer, or an error.
    Failed,
}

impl Vote {
    /// A claim of which nothing is known.
    pub(super) const CLAIM: Self = Self::Claimed { until: None };
    /// Somebody else has the lock, and until when is not known.
    pub(super) const TAKEN: Self = Self::Taken { until: None };

    pub(super) const fn is_granted(self) -> bool {
        matches!(self, Self::Granted { .. } | Self::Claimed { .. })
    }

    /// The same lease as a claim.
    pub(super) const fn as_claim(self) -> Self {
        match self {
            Self::Granted { lease_end } => Self::Claimed { until: Some(lease_end) },
            other => other,
        }
    }

    pub(super) const fn is_taken(self) -> bool {
        matches!(self, Self::Taken { .. })
    }

    pub(super) const fn lease_end(self) -> Option<Instant> {
        match self {
            Self::Granted { lease_end } => Some(lease_end),
            Self::Claimed { until } => until,
            Self::Open | Self::Taken { .. } | Self::Failed => None,
        }
    }
}
