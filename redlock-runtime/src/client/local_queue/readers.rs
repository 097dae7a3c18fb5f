//! Calls of this process that share the lock of one key, or wait to: the state that [`together`](super::together)
//! changes.

use super::reader::Reader;
use crate::client::acquisition::Acquisition;
use crate::time::clock::Instant;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

pub(super) enum Readers {
    /// One call asks the nodes, and others wait for its result.
    Gathering {
        since: Instant,
        /// Token of the call that asks the nodes.
        acquisition: Arc<Acquisition>,
        ttl: Duration,
        waiting: VecDeque<Arc<Reader>>,
    },
    /// Calls share the lock under this token.
    Joined(Arc<Acquisition>),
}

impl Readers {
    /// Removes and returns the waiting calls.
    pub(super) fn close(&mut self) -> VecDeque<Arc<Reader>> {
        match self {
            Self::Gathering { waiting, .. } => std::mem::take(waiting),
            Self::Joined(_) => VecDeque::new(),
        }
    }

    pub(super) fn is_gathering_for(&self, acquisition: &Arc<Acquisition>) -> bool {
        matches!(self, Self::Gathering { acquisition: ours, .. } if Arc::ptr_eq(ours, acquisition))
    }
}
