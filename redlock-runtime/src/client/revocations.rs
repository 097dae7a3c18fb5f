//! Locks that are being broken: by this process, and those of this process.

use crate::lock::OwnerToken;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Apart from the locks, of which there are many, since it is rare.
#[derive(Debug, Default)]
pub(crate) struct Revocations {
    /// The tokens of this process under which locks stand that it breaks, and whether the holder before has stopped.
    ours: Mutex<HashMap<OwnerToken, bool>>,
    /// The tokens of this process whose locks somebody breaks, and those that stand there instead, as he says.
    theirs: Mutex<HashMap<OwnerToken, OwnerToken>>,
}

impl Revocations {
    /// A lock that this process breaks stands under `token` from now on.
    pub(crate) fn begin(&self, token: OwnerToken) {
        lock(&self.ours).insert(token, false);
    }

    /// The holder before `token` says that it has stopped. What nobody waits for is nothing.
    pub(crate) fn stopped(&self, token: &OwnerToken) {
        if let Some(has_stopped) = lock(&self.ours).get_mut(token) {
            *has_stopped = true;
        }
    }

    pub(crate) fn has_stopped(&self, token: &OwnerToken) -> bool {
        lock(&self.ours).get(token).is_some_and(|has_stopped| *has_stopped)
    }

    /// The lock does not stand under `token` any more.
    pub(crate) fn end(&self, token: &OwnerToken) {
        lock(&self.ours).remove(token);
    }

    /// The lock of `token`, which this process holds, stands under the token `by`, says somebody.
    pub(crate) fn revoked(&self, token: OwnerToken, by: OwnerToken) {
        lock(&self.theirs).insert(token, by);
    }

    /// The body under `token` has stopped: who is to be told.
    pub(crate) fn ended(&self, token: &OwnerToken) -> Option<OwnerToken> {
        lock(&self.theirs).remove(token)
    }
}

fn lock<T>(tokens: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that can panic runs under this mutex.
    tokens.lock().unwrap_or_else(PoisonError::into_inner)
}
