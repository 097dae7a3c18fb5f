//! What a token goes by while it waits.

use crate::time::clock::Instant;

/// What a token goes by while it stands in the queues.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    /// Since when enough nodes have voted for it.
    pub(super) voted_since: Option<Instant>,
    /// Since when too few nodes have answered.
    pub(super) silent_since: Option<Instant>,
    /// Until when a node whose wake-ups do not arrive yet is not asked for a place in its queue.
    pub(super) listening_by: Instant,
    /// When it asks every node again.
    pub(super) poll_at: Instant,
}

impl Wait {
    pub(super) fn is_early(&self, now: Instant) -> bool {
        now < self.listening_by
    }
}
