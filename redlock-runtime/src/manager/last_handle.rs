//! Cleanup after the last handle of a manager.

use crate::client::local_queue::LocalQueue;
use std::sync::{Arc, Weak};

/// Shared by all handles. When the last one is dropped, it releases the idle locks: no call can request them any more, although
/// guards may still keep the local queues of the manager alive.
pub(super) struct LastHandle(Weak<LocalQueue>);

impl LastHandle {
    pub(super) fn of(local: &Arc<LocalQueue>) -> Self {
        Self(Arc::downgrade(local))
    }
}

impl Drop for LastHandle {
    fn drop(&mut self) {
        // If there are no guards either, the queues and their locks are gone already.
        if let Some(local) = self.0.upgrade() {
            local.on_last_handle_dropped();
        }
    }
}
