//! Read-only view of a key.

use super::NodeState;
use super::queue::Queue;
use crate::lock::class::Class;
use crate::lock::slot::slot_of;
use crate::lock::{LockKey, OwnerToken};
use crate::time::clock::Instant;
use std::time::Duration;

/// Holders and waiters of a key at a node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) holder: Option<SeenHolder>,
    /// Tokens that share the key, by their classes and in the order of their lease ends.
    pub(crate) readers: Vec<(SeenHolder, Class)>,
    /// Waiters, the next one first.
    pub(crate) waiters: Vec<(OwnerToken, Class)>,
    /// Largest ballot for the locks of the key's slot.
    pub(crate) ballot: Option<u64>,
}

/// Holder of a key, with the rest of its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeenHolder {
    pub(crate) token: OwnerToken,
    pub(crate) left: Duration,
}

impl NodeState {
    pub(crate) fn look(&self, key: &LockKey, now: Instant) -> Seen {
        let holder = self.locks.get(key.name()).filter(|holder| now < holder.expires);
        let queue = self.queues.get(key.name()).filter(|queue| !queue.is_gone(now));
        let reader = |token| {
            let (class, end) = self.readers.get(key.name())?.held_by(token, now)?;
            Some((SeenHolder { token, left: end.since(now) }, class))
        };
        let readers = self.readers.get(key.name()).map_or(Vec::new(), |readers| readers.live(now));
        Seen {
            readers: readers.into_iter().filter_map(reader).collect(),
            holder: holder.map(|holder| SeenHolder { token: holder.token, left: holder.expires.since(now) }),
            waiters: queue.map(Queue::in_order).unwrap_or_default(),
            ballot: Some(self.registers.look(slot_of(key.name()))).filter(|ballot| *ballot > 0),
        }
    }
}
