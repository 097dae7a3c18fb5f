//! Decides if a lock passes from one call to the next inside the process, without a command.
//!
//! A lock is passed on if all of this is true:
//!
//! 1. The previous call does not need the key any longer: its `min_hold` is over.
//! 2. The next call wants the lock for the same `ttl`. Another `ttl` would be a promise to other processes that they
//!    did not request.
//! 3. The fencing number of the token is valid for one more call, if the next call wants a number.
//! 4. The token waits in the queues, where its place belongs to the process; or it holds the lock, and can prove it.
//! 5. The token has had the lock for less than one `ttl` in total, however often its lease was extended. Even if every
//!    notification of a waiter is lost, other processes wait no longer than that.
//! 6. The lock is not shared: the next call wants it exclusively.
//! 7. No break of the lock was announced, or the nodes have been asked since.
//! 8. No other process is known to wait. Or one is known to wait, and the [`LocalBudget`] for its waiting time and the
//!    number of calls that went first is not used up.
//!
//! [`Candidate::is_passable`] decides if enough of the lease is left for the next call.

use super::{Candidate, Phase};
use crate::protocol::local_budget::LocalBudget;
use crate::protocol::rules::Rule;
use crate::protocol::timing::PASSABLE_PER_TTL;
use crate::time::clock::Instant;
use std::time::Duration;

/// Requirements of a call for a lock that may be passed on to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) ttl: Duration,
    pub(crate) is_fenced: bool,
    /// Set if the key has to stay taken after the call.
    pub(crate) is_kept: bool,
    /// Time for which the lock may stay idle afterwards.
    pub(crate) linger: Duration,
}

impl Candidate {
    /// Tries to hand the token to the next call of this process, which has `wanted` the lock. On success, returns
    /// `true`, counts the pass, and ends the ownership of the previous call.
    pub(crate) fn pass(&mut self, wanted: Wanted, budget: LocalBudget, now: Instant) -> bool {
        self.pass_while_wanted(self.contended_since, wanted, budget, now)
    }

    /// Passes the lock on if other processes are known to wait since `contended_since`.
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

    /// Returns `true` if the call that the lock was passed on to can use it unchanged.
    pub(crate) fn is_passable(&self, now: Instant) -> bool {
        self.is_passable_to(self.is_kept, now)
    }

    /// Returns `true` if enough of the lease is left for the next call. `is_kept`: its key has to stay taken after it.
    pub(super) fn is_passable_to(&self, is_kept: bool, now: Instant) -> bool {
        let ends_by_itself = is_kept && self.depends_on_claims_until(now).is_some();
        // Whole leases are on their way for a brief permit, just like for a body that begins on claims.
        let is_brief = self.is_permit() && self.counts_claims(now);
        let least =
            if is_brief { self.terms.enterable_from(now) } else { now.after(self.terms.ttl / PASSABLE_PER_TTL) };
        !ends_by_itself && self.valid_until().is_some_and(|end| end > least)
    }
}
