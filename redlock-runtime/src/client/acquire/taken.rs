//! The errors of a call that did not get the lock because others have it: they say how much of the lease of those is left, and
//! under which token, as far as that is known or cheap to ask for.

use super::Call;
use crate::client::acquisition::{Acquisition, Occupied};
use crate::error::LockError;
use crate::lock::OwnerToken;
use std::time::Duration;

impl Call<'_> {
    /// The error of a call that does not wait, when the nodes have said that the key is taken.
    pub(super) async fn taken(&self, acquisition: &Acquisition) -> LockError {
        match acquisition.find_occupant().await {
            Occupied::Data => acquisition.failure(),
            Occupied::Lock { left } => self.contended(left, self.holder_here()),
        }
    }

    /// Returns the token of another call of this process that holds one of the names.
    fn holder_here(&self) -> Option<OwnerToken> {
        self.parts.iter().find_map(|part| self.local.acquisition(part.name())?.held_as())
    }

    /// The error of a call that does not wait, when another call of this process has the key.
    pub(super) fn taken_here(&self) -> LockError {
        let first = self.local.acquisition(self.key.name());
        let left = first.as_ref().and_then(|first| first.taken_for());
        self.contended(left, first.and_then(|first| first.held_as()))
    }

    /// The error when the wait is over, and `acquisition` was in the queues meanwhile: who has the lock is asked then.
    pub(super) async fn timed_out(&self, acquisition: &Acquisition) -> LockError {
        let error = self.timed_out_by(Some(acquisition));
        let LockError::TimedOut { key, waited, lease_left, .. } = error else { return error };
        LockError::TimedOut { key, waited, lease_left, holder: acquisition.find_holder().await.map(Box::new) }
    }

    /// The error when the wait is over in the line. Whoever represents the process may have waited for servers that are
    /// silent.
    pub(super) fn gave_up_in_line(&self) -> LockError {
        match self.local.acquisition(self.key.name()) {
            Some(first) if first.is_waiting() && !first.is_heard() => first.failure(),
            first => self.timed_out_by(first.as_deref()),
        }
    }

    /// The error when the wait is over, by what `acquisition` knows.
    pub(super) fn timed_out_by(&self, acquisition: Option<&Acquisition>) -> LockError {
        let (key, waited) = (self.key.clone(), self.now().since(self.begun));
        let lease_left = acquisition.and_then(Acquisition::taken_for);
        LockError::TimedOut {
            key,
            waited,
            lease_left,
            holder: acquisition.and_then(Acquisition::held_as).map(Box::new),
        }
    }

    fn contended(&self, lease_left: Option<Duration>, holder: Option<OwnerToken>) -> LockError {
        LockError::Contended { key: self.key.clone(), lease_left, holder: holder.map(Box::new) }
    }
}
