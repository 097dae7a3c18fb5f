//! The errors of a call that did not get the lock because others have it: they say how much of the lease of those is left, as
//! far as that is known without asking for it.

use super::Call;
use crate::client::acquisition::{Acquisition, Occupied};
use crate::error::LockError;
use std::time::Duration;

impl Call<'_> {
    /// The error of a call that does not wait, when the nodes have said that the key is taken.
    pub(super) async fn taken(&self, acquisition: &Acquisition) -> LockError {
        match acquisition.find_occupant().await {
            Occupied::Data => acquisition.failure(),
            Occupied::Lock { left } => self.contended(left),
        }
    }

    /// The error of a call that does not wait, when another call of this process has the key.
    pub(super) fn taken_here(&self) -> LockError {
        let first = self.local.acquisition(self.key.name());
        self.contended(first.and_then(|first| first.taken_for()))
    }

    /// The error when the wait is over, and `acquisition` was in the queues meanwhile.
    pub(super) fn timed_out(&self, acquisition: Option<&Acquisition>) -> LockError {
        let (key, waited) = (self.key.clone(), self.now().since(self.begun));
        LockError::TimedOut { key, waited, lease_left: acquisition.and_then(Acquisition::taken_for) }
    }

    /// The error when the wait is over in the line. Whoever represents the process may have waited for servers that are
    /// silent.
    pub(super) fn gave_up_in_line(&self) -> LockError {
        match self.local.acquisition(self.key.name()) {
            Some(first) if first.is_waiting() && !first.is_heard() => first.failure(),
            first => self.timed_out(first.as_deref()),
        }
    }

    fn contended(&self, lease_left: Option<Duration>) -> LockError {
        LockError::Contended { key: self.key.clone(), lease_left }
    }
}
