//! Tokens that keep a lock taken although no call of this process has it.
//!
//! A lock may have to stay taken for a while, or may have been left for another worker. A wake-up about its token is
//! then not a sign of an abandoned lock, and must not cause a release.

use crate::lock::OwnerToken;
use crate::time::clock::Instant;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of tokens below which expired ones are not searched for. Smaller: every window causes a search. Larger: more
/// memory.
const SWEEP_FROM: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct KeptTokens(Mutex<Tokens>);

#[derive(Debug, Default)]
struct Tokens {
    until: HashMap<OwnerToken, Instant>,
    /// Number of tokens at which expired ones are removed: twice the number that was left the last time.
    sweep_at: usize,
}

impl KeptTokens {
    /// Prevents releases of `token` because of notifications before `until`.
    pub(crate) fn keep(&self, token: OwnerToken, until: Instant, now: Instant) {
        let mut tokens = self.tokens();
        if tokens.until.len() >= tokens.sweep_at.max(SWEEP_FROM) {
            tokens.until.retain(|_, until| now < *until);
            tokens.sweep_at = tokens.until.len() * 2;
        }
        // The longest of several reasons applies.
        let known = tokens.until.entry(token).or_insert(until);
        *known = until.max(*known);
    }

    /// Returns `true` if `token` is kept at `now`.
    pub(crate) fn is_kept(&self, token: &OwnerToken, now: Instant) -> bool {
        self.tokens().until.get(token).is_some_and(|until| now < *until)
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        // Code under this mutex cannot panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::owner_token::ManagerId;
    use crate::time::token_clock::TokenTime;
    use std::time::Duration;

    #[test]
    fn token_is_kept_until_the_latest_of_its_deadlines() {
        let at = |seconds| Instant::from_origin(Duration::from_secs(seconds));
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0));
        let kept = KeptTokens::default();
        kept.keep(token, at(60), at(0));
        kept.keep(token, at(5), at(0));
        assert!(kept.is_kept(&token, at(59)) && !kept.is_kept(&token, at(60)));
        kept.keep(token, at(90), at(60));
        assert!(kept.is_kept(&token, at(89)));
    }
}
