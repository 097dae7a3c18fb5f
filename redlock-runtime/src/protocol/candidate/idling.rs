//! Whether a lock stays held without a call, *idle*, for the next call of the process; and whether that one may have it.
//!
//! It is passing on ([`passing`](super::passing)) to a call that has yet to come, and for the nodes a holder that takes its
//! time. So a lock becomes idle only if it could be passed on as it is:
//!
//! 1. A call really had it, and wants it to linger. What a call has obtained and not used is given back, because a call that
//!    was dropped leaves nothing behind.
//! 2. Nobody elsewhere waits for it, as far as is known: they could not be told apart from those who come while it is idle,
//!    and hear of.
//! 3. It stays idle for its time, and no longer than the next call could go on with it: a quarter of the `ttl` before the
//!    lease ends, and for one `ttl` in all. Nothing is renewed meanwhile.
//!
//! Whatever was true then is looked at again when a call comes: others may want the lock by now, and the clock of a server
//! may have been set forward. That saves a round trip and is no rule: whoever has the lock next looks at the lease once more,
//! as with every lock that is passed on.

use super::{Candidate, Phase, Wanted};
use crate::protocol::rules::Rule;
use crate::protocol::timing::PASSABLE_PER_TTL;
use crate::time::clock::Instant;

impl Candidate {
    /// Leaves the lock without a call. Until when it may stay so; `None` when it is to be given back, and nothing has
    /// changed.
    pub(crate) fn keep(&mut self, now: Instant) -> Option<Instant> {
        let is_wanted = self.is_contended() && self.terms.applies(Rule::WantedIsNotKept);
        if self.phase != Phase::Holding || is_wanted || self.is_lowered() {
            return None;
        }
        let useful_until = self.valid_until()?.before(self.terms.ttl / PASSABLE_PER_TTL);
        let is_used = self.hold_period.is_used() || !self.terms.applies(Rule::OnlyUsedIsKept);
        let until = self.hold_period.idle_until(now).filter(|_| is_used)?.min(useful_until);
        (now < until).then(|| {
            self.hold_period.leave(now);
            until
        })
    }

    /// Whether a call has the lock and has begun with it: who does not wait for its end may be told so.
    pub(crate) fn has_body(&self) -> bool {
        self.phase == Phase::Holding && self.hold_period.is_used()
    }

    /// Gives an idle lock to the next call, which has `wanted` it, if that can have it as it is.
    pub(crate) fn retake(&mut self, wanted: Wanted, now: Instant) -> bool {
        let fits =
            self.phase == Phase::Holding && wanted.ttl == self.terms.ttl && self.fencing.may_pass(wanted.is_fenced);
        // A node to which there is a new connection would be asked now, were the lock not idle.
        let is_doubted = self.voters.iter().any(|voter| voter.recheck_at.is_some_and(|at| at <= now));
        fits && !is_doubted
            && !self.is_contended()
            && self.is_passable_to(wanted.is_kept, now)
            && self.hold_period.is_fresh(now)
    }
}
