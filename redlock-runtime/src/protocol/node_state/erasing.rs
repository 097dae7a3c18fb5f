//! What another program does that knows nothing of queues, for tests: it deletes a key, whatever is there.

use super::NodeState;
use crate::time::clock::Instant;

impl NodeState {
    /// Deletes the key called `key` without handing it to anybody. Whether anything was there.
    pub(crate) fn erase(&mut self, key: &str, now: Instant) -> bool {
        self.expire(key, now);
        // A key is among one of them at the most.
        self.locks.remove(key).is_some() || self.readers.remove(key).is_some()
    }
}
