//! Tokens that hold a lock although no call of this process has it.
//!
//! A lock that must stay taken for a while, or that another process goes on with: a wake-up about its token is no sign of
//! something that was left behind.

use crate::clock::Instant;
use crate::token::OwnerToken;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Parked {
    until: Mutex<HashMap<OwnerToken, Instant>>,
}

impl Parked {
    /// Nothing is to be done about `token` before `until`.
    pub(crate) fn park(&self, token: OwnerToken, until: Instant, now: Instant) {
        let mut parked = self.tokens();
        parked.retain(|_, until| now < *until);
        parked.insert(token, until);
    }

    pub(crate) fn is_parked(&self, token: &OwnerToken, now: Instant) -> bool {
        self.tokens().get(token).is_some_and(|until| now < *until)
    }

    fn tokens(&self) -> MutexGuard<'_, HashMap<OwnerToken, Instant>> {
        // No code that can panic runs under this mutex.
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
