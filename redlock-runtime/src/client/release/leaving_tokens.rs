//! Tokens of which a node will have nothing more to say as soon as it has answered their release.
//!
//! What the node says of a token that nobody here has is answered by a release, since its process or its call is gone, or its
//! release went astray. But a message may also have been on its way already when the token was released: another release would
//! find nothing. While the first one is not answered, and everything that was sent about the token before has its place before
//! it in the order of the connection, whatever the message tells of is over with it.

use crate::lock::OwnerToken;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct LeavingTokens(Mutex<HashSet<OwnerToken>>);

impl LeavingTokens {
    /// The release of `token` is about to be sent.
    pub(super) fn begin(&self, token: OwnerToken) {
        self.tokens().insert(token);
    }

    /// The release of `token` is answered, or is to be sent again: that one may be executed before what was cut off with the
    /// first.
    pub(super) fn end(&self, token: &OwnerToken) {
        self.tokens().remove(token);
    }

    /// Whether what the node says of `token` is over soon.
    pub(crate) fn contains(&self, token: &OwnerToken) -> bool {
        self.tokens().contains(token)
    }

    fn tokens(&self) -> MutexGuard<'_, HashSet<OwnerToken>> {
        // No code that can panic runs under this mutex.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
