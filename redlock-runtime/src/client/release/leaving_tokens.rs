//! Tokens about which a node sends no further messages after it has answered their release.
//!
//! A message about an unknown token is answered by a release, because its process or its call is gone, or its release
//! was lost. But the message may have been in flight when the token was released; then another release would find
//! nothing. Such a message is obsolete if the first release is unanswered, and all commands about the token precede it
//! in the order of the connection.

use crate::lock::OwnerToken;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct LeavingTokens(Mutex<HashSet<OwnerToken>>);

impl LeavingTokens {
    /// Records that the release of `token` is about to be sent.
    pub(super) fn begin(&self, token: OwnerToken) {
        self.tokens().insert(token);
    }

    /// Records that the release of `token` is answered, or will be sent again. The repeated release may be executed
    /// before a command that was cut off with the first one.
    pub(super) fn end(&self, token: &OwnerToken) {
        self.tokens().remove(token);
    }

    /// Returns `true` if messages about `token` are obsolete.
    pub(crate) fn contains(&self, token: &OwnerToken) -> bool {
        self.tokens().contains(token)
    }

    fn tokens(&self) -> MutexGuard<'_, HashSet<OwnerToken>> {
        // Code under this mutex cannot panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
