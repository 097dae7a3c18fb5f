//! Locks that this process breaks: whether their holders have stopped.

use crate::lock::OwnerToken;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The tokens under which broken locks stand, and whether the holder before has said that it has stopped.
#[derive(Debug, Default)]
pub(crate) struct Revocations(Mutex<HashMap<OwnerToken, bool>>);

impl Revocations {
    /// A lock stands under `token` from now on.
    pub(crate) fn begin(&self, token: OwnerToken) {
        self.tokens().insert(token, false);
    }

    /// The holder before `token` says that it has stopped. What nobody waits for is nothing.
    pub(crate) fn stopped(&self, token: &OwnerToken) {
        if let Some(has_stopped) = self.tokens().get_mut(token) {
            *has_stopped = true;
        }
    }

    pub(crate) fn has_stopped(&self, token: &OwnerToken) -> bool {
        self.tokens().get(token).is_some_and(|has_stopped| *has_stopped)
    }

    /// The lock does not stand under `token` any more.
    pub(crate) fn end(&self, token: &OwnerToken) {
        self.tokens().remove(token);
    }

    fn tokens(&self) -> MutexGuard<'_, HashMap<OwnerToken, bool>> {
        // No code that can panic runs under this mutex.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
