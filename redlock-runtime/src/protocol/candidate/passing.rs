//! Whether a lock passes on from call to call inside the process, without a command.
//!
//! It does when all of this is true:
//!
//! 1. The call before needs the key no longer: its least hold is over.
//! 2. The next call wants the lock for the same `ttl`. Another one would be a promise to other processes that they did not
//!    ask for.
//! 3. The fencing number of the token is good for one call more, if the next one wants a number.
//! 4. The token stands in the queues, where its place belongs to the process; or it holds the lock, and can prove it.
//! 5. The token has had the lock for less than one `ttl` in all, however often the lease was made longer. Should every
//!    notice of a waiter be lost, other processes wait no longer than that.
//! 6. It is not shared: who comes next wants it alone.
//! 7. Nobody says that he breaks the lock, or the nodes have been asked since.
//! 8. Nobody elsewhere waits, as far as is known; or it is known for so short a time, and so few calls have gone first since
//!    then, that the [`LocalBudget`] is not used up.
//!
//! Whether enough of the lease is left for whoever has it next is decided there ([`Candidate::is_passable`]).

use super::{Candidate, Phase};
use crate::protocol::local_budget::LocalBudget;
use crate::protocol::rules::Rule;
use crate::protocol::timing::PASSABLE_PER_TTL;
use crate::time::clock::Instant;
use std::time::Duration;

/// What a call wants of the lock that may be passed on to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) ttl: Duration,
    pub(crate) is_fenced: bool,
    /// Whether the key has to stay taken after the call.
    pub(crate) is_kept: bool,
    /// For how long it may be idle afterwards.
    pub(crate) linger: Duration,
}

impl Candidate {
    /// Whether the next call in this process, which has `wanted` the lock, may go on with the token. If so, it is counted,
    /// and whoever had the lock has it no more.
    pub(crate) fn pass(&mut self, wanted: Wanted, budget: LocalBudget, now: Instant) -> bool {
        self.pass_while_wanted(self.contended_since, wanted, budget, now)
    }

    /// The same when others are known to wait since then.
    pub(super) fn pass_while_wanted(
        &mut self,
        contended_since: Option<Instant>,
        wanted: Wanted,
        budget: LocalBudget,
        now: Instant,
    ) -> bool {
        let fits = self.hold_period.rest(now).is_none()
            && !self.is_lowered()
            && wanted.ttl == self.terms.ttl
            && self.fencing.may_pass(wanted.is_fenced);
        fits && match self.phase {
            Phase::Waiting => true,
            Phase::Trying | Phase::Superseded | Phase::Ended => false,
            Phase::Holding => {
                let is_sure = self.valid_until().is_some_and(|end| now < end) && !self.is_in_doubt(now);
                is_sure
                    && (self.hold_period.pass(now, contended_since, budget)
                        || !self.terms.applies(Rule::PassesAreLimited))
            }
        }
    }

    /// Whether the call that the lock was passed on to can have it as it is.
    pub(crate) fn is_passable(&self, now: Instant) -> bool {
        self.is_passable_to(self.is_kept, now)
    }

    /// Whether there is enough left of the lease for the next call. `is_kept`: its key has to stay taken after it.
    pub(super) fn is_passable_to(&self, is_kept: bool, now: Instant) -> bool {
        let ends_by_itself = is_kept && self.stands_on_claims_until(now).is_some();
        // Whole leases are on their way for a permit that was given for a short time, as for a body that begins by claims.
        let is_brief = self.is_permit() && self.counts_claims(now);
        let least =
            if is_brief { self.terms.enterable_from(now) } else { now.after(self.terms.ttl / PASSABLE_PER_TTL) };
        !ends_by_itself && self.valid_until().is_some_and(|end| end > least)
    }
}
