//! State of a waiting token.

use crate::time::clock::Instant;

/// State of a token while it waits in the queues.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    /// Time since which enough nodes have voted for the token.
    pub(super) voted_since: Option<Instant>,
    /// Time since which too few nodes have answered.
    pub(super) silent_since: Option<Instant>,
    /// Time until which a node whose wake-ups do not arrive yet is not asked for a place in its queue.
    pub(super) listening_by: Instant,
    /// Time at which the token asks every node again.
    pub(super) poll_at: Instant,
    /// Largest number of tokens ahead that a node has reported.
    pub(super) most_ahead: u32,
}

impl Wait {
    pub(super) fn is_early(&self, now: Instant) -> bool {
        now < self.listening_by
    }
}
