//! Commands that a node has not answered yet.

use crate::protocol::command::Verb;
use crate::time::clock::Instant;

/// A command that was sent, as far as its answer depends on it.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    pub(super) kind: Kind,
    pub(super) sent: Instant,
    /// The lease end that a positive answer proves.
    pub(super) lease_end: Instant,
    /// A yield was sent after it: a positive answer proves nothing any more.
    pub(super) is_void: bool,
    /// A claim came before its answer: which of them is newer is not known.
    pub(super) is_overtaken: bool,
}

/// What a [`Verb`] is without its durations: every held lock keeps room for one command of each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Takes the lock, if it is free.
    Take,
    /// Takes the lock, or a place in the queue.
    Queue,
    /// Starts the lease of an owner anew.
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
            // No candidate revokes or raises a register.
            Verb::Release { .. } | Verb::Keep { .. } | Verb::Revoke | Verb::Raise { .. } => Self::Release,
        }
    }

    /// Whether a positive answer proves a lease.
    pub(super) const fn proves_lease(self) -> bool {
        matches!(self, Self::Take | Self::Queue | Self::Extension)
    }
}
