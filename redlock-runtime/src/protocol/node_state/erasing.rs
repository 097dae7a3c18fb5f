//! Deletion of a key by another program that does not know the queues, for tests.

use super::NodeState;
use crate::time::clock::Instant;

impl NodeState {
    /// Deletes the key called `key` without handing it to a waiter. Returns `true` if there was such a key.
    pub(crate) fn erase(&mut self, key: &str, now: Instant) -> bool {
        self.expire(key, now);
        // A key is in at most one of the two maps.
        self.locks.remove(key).is_some() || self.readers.remove(key).is_some()
    }
}
