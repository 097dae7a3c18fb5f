//! Owner of the lock at one node, and the proven end of its lease.

use crate::time::clock::Instant;

/// Owner of the lock at a node, as far as the candidate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// Not known yet.
    Open,
    /// Node holds the lock for us as a lease, provably until `lease_end`.
    Granted { lease_end: Instant },
    /// Node was handed to us as a claim, provably until then if its end is known. An extension turns it into a lease.
    Claimed { until: Option<Instant> },
    /// Another token owns the lock there, with the last reported lease end; or no token does.
    Taken { until: Option<Instant> },
    /// No answer, or an error.
    Failed,
}

impl Vote {
    /// Claim without a proof.
    pub(super) const CLAIM: Self = Self::Claimed { until: None };
    /// Another token owns the lock, with an unknown lease end.
    pub(super) const TAKEN: Self = Self::Taken { until: None };

    pub(super) const fn is_granted(self) -> bool {
        matches!(self, Self::Granted { .. } | Self::Claimed { .. })
    }

    /// Returns the lease as a claim with the same end.
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
