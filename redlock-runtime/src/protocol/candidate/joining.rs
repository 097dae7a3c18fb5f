//! Whether a call that shares a lock joins another call of its process: with the same token, and without a command.
//!
//! It does when all of this is true. Otherwise it takes a token of its own, and asks the nodes as any other process does.
//!
//! 1. It wants the lock for the same `ttl`, and nothing that is a matter of the token alone: no number, and no key that stays
//!    taken after it.
//! 2. The token has the lock and can prove it, and nobody says that he breaks it. Enough of the lease is left for a whole
//!    body; or the extension of what was handed over is on its way, as it is for the call that came first.
//! 3. The token has had the lock for less than one `ttl` in all, however many calls have joined: should every notice of a
//!    waiter be lost, a writer waits no longer than that, and one body more.
//! 4. Nobody elsewhere waits to have the lock alone, as far as is known; or it is known for so short a time, and so few calls
//!    have joined since then, that the [`LocalBudget`] is not used up. So a writer comes in when the bodies have ended that
//!    run by then.
//!
//! That nobody in this process waits to have it alone is seen to where the lines are. The limits are those of a lock that is passed on ([`passing`](super::passing)).

use super::{Candidate, Phase, Wanted};
use crate::protocol::local_budget::LocalBudget;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;

impl Candidate {
    /// Whether one more call, which has `wanted` the lock, may have it together with those that have the token. If so, it is
    /// counted.
    pub(crate) fn join(&mut self, wanted: Wanted, budget: LocalBudget, now: Instant) -> bool {
        let fits = wanted.ttl == self.terms.ttl && !wanted.is_fenced && !wanted.is_kept;
        fits && self.phase == Phase::Holding
            && (self.is_joinable(now) || !self.terms.applies(Rule::HeldIsJoined))
            && (self.hold_period.goes_first(now, self.contended_since, budget)
                || !self.terms.applies(Rule::JoinsAreLimited))
    }

    fn is_joinable(&self, now: Instant) -> bool {
        let lasts = self.is_passable(now) || self.stands_on_claims_until(now).is_some();
        lasts && self.is_held(now) && !self.is_in_doubt(now)
    }

    /// Those who have the lock together need it until `end` at the latest, or for as long as they run.
    pub(crate) const fn end_by(&mut self, end: Option<Instant>) {
        self.hold_period.end_by(end);
    }
}
