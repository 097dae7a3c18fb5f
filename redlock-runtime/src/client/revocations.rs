//! Locks that are being broken: by this process, and those of this process.

use crate::lock::OwnerToken;
use crate::time::clock::Instant;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many who say that they break one lock are told that its body has stopped, of more than that the latest. Smaller, somebody who
/// only says so keeps the answer from who does it; larger, more memory for whoever may publish.
const MOST: usize = 4;

/// Apart from the locks, of which there are many, since it is rare.
#[derive(Debug, Default)]
pub(crate) struct Revocations {
    /// The tokens of this process under which locks stand that it breaks.
    ours: Mutex<HashMap<OwnerToken, Standing>>,
    /// The tokens of this process whose locks somebody breaks, and those that stand there instead, as is said.
    theirs: Mutex<HashMap<OwnerToken, Vec<OwnerToken>>>,
}

/// A token that has the place of a holder whose lock is broken.
#[derive(Debug)]
struct Standing {
    has_stopped: bool,
    /// Nothing stands under it any more.
    until: Instant,
}

impl Revocations {
    /// A lock that this process breaks stands under `token` from now on, and until then at the most.
    pub(crate) fn begin(&self, token: OwnerToken, until: Instant, now: Instant) {
        let mut ours = lock(&self.ours);
        ours.retain(|_, standing| now < standing.until);
        ours.insert(token, Standing { has_stopped: false, until });
    }

    /// The holder before `token` says that it has stopped. Whether that is news.
    pub(crate) fn stopped(&self, token: &OwnerToken) -> bool {
        let mut ours = lock(&self.ours);
        ours.get_mut(token).is_some_and(|standing| !std::mem::replace(&mut standing.has_stopped, true))
    }

    pub(crate) fn has_stopped(&self, token: &OwnerToken) -> bool {
        lock(&self.ours).get(token).is_some_and(|standing| standing.has_stopped)
    }

    /// Whether `token` has the place of a holder that may be at work.
    pub(crate) fn stands_in(&self, token: &OwnerToken) -> bool {
        lock(&self.ours).get(token).is_some_and(|standing| !standing.has_stopped)
    }

    /// The lock of `token`, which this process has, stands under the token `by`, says somebody.
    pub(crate) fn revoked(&self, token: OwnerToken, by: OwnerToken) {
        let mut theirs = lock(&self.theirs);
        let all = theirs.entry(token).or_default();
        if !all.contains(&by) {
            all.push(by);
        }
        let too_many = all.len().saturating_sub(MOST);
        all.drain(..too_many);
    }

    /// The body under `token` has stopped: who is to be told.
    pub(crate) fn ended(&self, token: &OwnerToken) -> Vec<OwnerToken> {
        lock(&self.theirs).remove(token).unwrap_or_default()
    }
}

fn lock<T>(tokens: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that can panic runs under this mutex.
    tokens.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::owner_token::ManagerId;
    use crate::time::token_clock::TokenTime;

    #[test]
    fn of_many_who_say_that_they_break_a_lock_the_latest_are_told() {
        let token = |counter| OwnerToken::new(ManagerId::numbered(7), TokenTime::new(1, counter));
        let (ours, by) = (token(0), [1, 2, 3, 4, 5, 6].map(token));
        let revocations = Revocations::default();
        for by in by.iter().chain(by.last()) {
            revocations.revoked(ours, *by);
        }
        assert_eq!(revocations.ended(&ours), by[2..]);
        assert_eq!(revocations.ended(&ours), [], "told once");
    }
}
