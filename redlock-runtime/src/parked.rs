//! Tokens that hold a lock although no call of this process has it.
//!
//! A lock that must stay taken for a while, or that another process goes on with: a wake-up about its token is no sign of
//! something that was left behind.

use crate::clock::Instant;
use crate::token::OwnerToken;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many may lie expired before they are looked for.
const SWEEP_FROM: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Parked(Mutex<Tokens>);

#[derive(Debug, Default)]
struct Tokens {
    until: HashMap<OwnerToken, Instant>,
    /// The number at which expired ones are removed: twice what was left the last time.
    sweep_at: usize,
}

impl Parked {
    /// Nothing is to be done about `token` before `until`.
    pub(crate) fn park(&self, token: OwnerToken, until: Instant, now: Instant) {
        let mut tokens = self.tokens();
        if tokens.until.len() >= tokens.sweep_at.max(SWEEP_FROM) {
            tokens.until.retain(|_, until| now < *until);
            tokens.sweep_at = tokens.until.len() * 2;
        }
        tokens.until.insert(token, until);
    }

    pub(crate) fn is_parked(&self, token: &OwnerToken, now: Instant) -> bool {
        self.tokens().until.get(token).is_some_and(|until| now < *until)
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        // No code that can panic runs under this mutex.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
