//! What happens when the last handle of a manager is dropped.

use crate::client::local_queue::LocalQueue;
use std::sync::{Arc, Weak};

/// Shared by all handles. Dropped with the last one, it gives back the locks that no call has: nobody can ask for them any
/// more, although guards may still keep the lines of the manager alive.
pub(super) struct LastHandle(Weak<LocalQueue>);

impl LastHandle {
    pub(super) fn of(local: &Arc<LocalQueue>) -> Self {
        Self(Arc::downgrade(local))
    }
}

impl Drop for LastHandle {
    fn drop(&mut self) {
        // Without guards, the locks have gone together with the manager.
        if let Some(local) = self.0.upgrade() {
            local.without_handle();
        }
    }
}
