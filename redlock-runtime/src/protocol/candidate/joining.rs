//! Decides if a call for a shared lock joins another call of its process: with the same token, and without a command.
//!
//! It joins if all of this is true. Otherwise, it takes its own token and asks the nodes, like any other process.
//!
//! 1. The call wants the lock for the same `ttl`. It wants neither a fencing number nor a key that stays taken after
//!    it, because these depend on a single call.
//! 2. The token owns the lock and can prove it, and no break was announced. Enough of the lease is left for a whole
//!    body, or the extension of its claims is on its way.
//! 3. The token has had the lock for less than one `ttl` in total, however many calls have joined. Even if every
//!    notification of a waiter is lost, a writer waits no longer than that, plus one body.
//! 4. No writer elsewhere is known to wait. Or one is known to wait, and the [`LocalBudget`] for its waiting time and
//!    the number of joined calls is not used up. So a writer enters after the bodies that run at that time.
//!
//! The local queues make sure that no writer of this process waits. The limits equal the limits of a lock that is
//! passed on ([`passing`](super::passing)).

use super::{Candidate, Phase, Wanted};
use crate::protocol::local_budget::LocalBudget;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;

impl Candidate {
    /// Tries to add one more call, which has `wanted` the lock, to the present users of the token. On success, returns
    /// `true` and counts the call.
    pub(crate) fn join(&mut self, wanted: Wanted, budget: LocalBudget, now: Instant) -> bool {
        let fits = wanted.ttl == self.terms.ttl && !wanted.is_fenced && !wanted.is_kept;
        fits && self.phase == Phase::Holding
            && (self.is_joinable(now) || !self.terms.applies(Rule::HeldIsJoined))
            && (self.hold_period.try_local_pass(now, self.contended_since, budget)
                || !self.terms.applies(Rule::JoinsAreLimited))
    }

    fn is_joinable(&self, now: Instant) -> bool {
        let lasts = self.is_passable(now) || self.depends_on_claims_until(now).is_some();
        lasts && self.is_held(now) && !self.is_in_doubt(now)
    }

    /// Sets the time until which the users of the lock need it, or `None` if they need it until they end.
    pub(crate) const fn set_must_end(&mut self, end: Option<Instant>) {
        self.hold_period.set_must_end(end);
    }
}
