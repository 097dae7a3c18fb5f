//! Commands that a node has not answered yet.

use crate::protocol::command::Verb;
use crate::time::clock::Instant;

/// Data of a sent command that its answer depends on.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    pub(super) kind: Kind,
    pub(super) sent: Instant,
    /// Lease end that a positive answer proves.
    pub(super) lease_end: Instant,
    /// Set if a yield was sent after the command: a positive answer proves nothing.
    pub(super) is_void: bool,
    /// Set if a claim arrived before the answer: their order is not known.
    pub(super) is_overtaken: bool,
}

/// [`Verb`] without its durations: every held lock keeps room for one command of each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Takes the lock, if it is free.
    Take,
    /// Takes the lock, or a place in the queue.
    Queue,
    /// Restarts the lease of an owner.
    Extension,
    Yield,
    Release,
}

impl InFlight {
    pub(super) const fn new(verb: Verb, sent: Instant, lease_end: Instant) -> Self {
        Self { kind: Kind::of(verb), sent, lease_end, is_void: false, is_overtaken: false }
    }
}

impl Kind {
    const fn of(verb: Verb) -> Self {
        match verb {
            Verb::SetNx { .. } | Verb::Enter { .. } => Self::Take,
            Verb::Acquire { .. } => Self::Queue,
            Verb::Extend { .. } | Verb::Renew { .. } | Verb::Adopt { .. } => Self::Extension,
            Verb::Yield { .. } => Self::Yield,
            // Candidates never revoke a lock or raise a register.
            Verb::Release { .. } | Verb::Keep { .. } | Verb::Revoke | Verb::Raise { .. } => Self::Release,
        }
    }

    /// Returns `true` if a positive answer proves a lease.
    pub(super) const fn proves_lease(self) -> bool {
        matches!(self, Self::Take | Self::Queue | Self::Extension)
    }
}
