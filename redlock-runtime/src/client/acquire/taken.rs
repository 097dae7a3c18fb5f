//! Errors of a call whose lock is taken. They contain the rest of the holder's lease and the holder's token, as far as
//! these are known or cheap to find out.

use super::Call;
use crate::client::acquisition::{Acquisition, Occupied};
use crate::error::{LockError, LockHolder};
use crate::lock::OwnerToken;
use crate::protocol::command::Subject;
use std::time::Duration;

impl Call<'_> {
    /// Returns the error of a call that does not wait, after the nodes have reported that the key is taken.
    pub(super) async fn taken(&self, acquisition: &Acquisition) -> LockError {
        match acquisition.find_occupant().await {
            Occupied::Data => acquisition.failure(),
            Occupied::Lock { left } => {
                self.contended(left, self.local_holder().or_else(|| self.local_reader(acquisition)))
            }
        }
    }

    /// Returns another call of this process that holds one of the names exclusively.
    fn local_holder(&self) -> Option<LockHolder> {
        self.parts.iter().find_map(|part| self.local.acquisition(part.name())?.held_as())
    }

    /// Returns a call of this process that shares a lock which `acquisition` waits for. The nodes name only exclusive holders.
    fn local_reader(&self, acquisition: &Acquisition) -> Option<LockHolder> {
        let ours = self.local.acquisitions();
        ours.iter().filter(|other| other.conflicts_with(acquisition)).find_map(|other| other.held_as())
    }

    /// Returns the error of a call that does not wait, if another call of this process has the key.
    pub(super) fn contended_locally(&self) -> LockError {
        let first = self.local.acquisition(self.key.name());
        let left = first.as_ref().and_then(|first| first.taken_for());
        self.contended(left, first.and_then(|first| first.held_as()))
    }

    /// Returns the error at the end of a wait in the queues with `acquisition`, after it has asked for the holder.
    pub(super) async fn timed_out(&self, acquisition: &Acquisition) -> LockError {
        let error = self.timeout_error(Some(acquisition));
        let LockError::TimedOut { key, waited, lease_left, .. } = error else { return error };
        let holder = acquisition.find_holder().await.map(|token| self.holder_of(token));
        let holder = holder.or_else(|| self.local_reader(acquisition)).map(Box::new);
        LockError::TimedOut { key, waited, lease_left, holder }
    }

    /// Returns the holder with this token, with its source location if it is a call of this process.
    fn holder_of(&self, token: OwnerToken) -> LockHolder {
        let ours = self.parts.keys().find_map(|key| self.local.find(&Subject::new(key.clone(), token))?.held_as());
        ours.unwrap_or_else(|| LockHolder::new(token, None))
    }

    /// Returns the error at the end of a wait in the local queue. The head of the queue may have waited for silent
    /// servers.
    pub(super) fn local_queue_timeout_error(&self) -> LockError {
        match self.local.acquisition(self.key.name()) {
            Some(first) if first.is_waiting() && !first.is_heard() => first.failure(),
            first => self.timeout_error(first.as_deref()),
        }
    }

    /// Returns the error at the end of the wait, from the knowledge of `acquisition`.
    pub(super) fn timeout_error(&self, acquisition: Option<&Acquisition>) -> LockError {
        let (key, waited) = (self.key.clone(), self.now().since(self.begun));
        let lease_left = acquisition.and_then(Acquisition::taken_for);
        LockError::TimedOut {
            key,
            waited,
            lease_left,
            holder: acquisition.and_then(Acquisition::held_as).map(Box::new),
        }
    }

    fn contended(&self, lease_left: Option<Duration>, holder: Option<LockHolder>) -> LockError {
        LockError::Contended { key: self.key.clone(), lease_left, holder: holder.map(Box::new) }
    }
}

#[cfg(test)]
mod tests {
    use crate::{LockManager, LockPart, LockRequest, Mode, Wait};
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn error_of_a_spawned_child_names_the_line_of_its_parent() {
        let manager = LockManager::in_memory();
        let second = Wait::For(Duration::from_secs(1));
        let shared = || [LockPart::shared("a"), LockPart::shared("b")];
        let table = [
            (LockRequest::new("a"), LockRequest::new("a")),
            (LockRequest::shared("a"), LockRequest::new("a")),
            (LockRequest::all(["a", "b"]), LockRequest::shared("a")),
            (LockRequest::all(shared()), LockRequest::all(["b", "c"])),
            (LockRequest::path("/a").mode(Mode::Shared), LockRequest::path("/a/b")),
        ];
        for (parent, request) in table {
            let (guard, line) = (manager.acquire(parent).await.unwrap(), line!());
            let here = format!(": the call at {}:{line} in this process", file!());
            for wait in [Wait::None, second] {
                let (child, request) = (manager.clone(), request.clone().wait(wait));
                let error = tokio::spawn(async move { child.acquire(request).await }).await.unwrap().unwrap_err();
                assert!(error.to_string().ends_with(&here), "{wait:?}: {error}");
                assert_eq!(error.holder(), Some(guard.token()));
            }
        }
    }
}
