//! Decides if a lock stays held without a call, *idle*, for the next call of the process, and if that call may reuse
//! it.
//!
//! Idling is passing on ([`passing`](super::passing)) to a future call. For the nodes, it is a holder that takes its
//! time. So a lock becomes idle only if it could be passed on unchanged:
//!
//! 1. A call has really used the lock, and wants it to linger. A lock that was acquired but not used is released,
//!    because a dropped call leaves nothing behind.
//! 2. No other process is known to wait for it. Otherwise, new waiters, which must be noticed while the lock is idle,
//!    could not be told apart from the old ones.
//! 3. It stays idle for its time, but never longer than the next call could use it. The limits are a quarter of the
//!    `ttl` before the end of the lease, and one `ttl` in total. It is not renewed meanwhile.
//!
//! All of this is checked again when a call arrives: other processes may want the lock now, and the clock of a server
//! may have been set forward. This check saves a round trip and is not needed for safety. The next holder examines the
//! lease again, just like that of every lock that is passed on.

use super::{Candidate, Phase, Wanted};
use crate::protocol::rules::Rule;
use crate::protocol::timing::PASSABLE_PER_TTL;
use crate::time::clock::Instant;

impl Candidate {
    /// Leaves the lock idle. Returns the time until which it may stay idle. Returns `None` if it must be released, and
    /// nothing has changed.
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

    /// Returns `true` if a call has the lock and has begun its body. A call that does not wait for its end may be told
    /// that.
    pub(crate) fn has_body(&self) -> bool {
        self.phase == Phase::Holding && self.hold_period.is_used()
    }

    /// Gives an idle lock to the next call, which has `wanted` it, if that call can use it unchanged.
    pub(crate) fn retake(&mut self, wanted: Wanted, now: Instant) -> bool {
        let fits =
            self.phase == Phase::Holding && wanted.ttl == self.terms.ttl && self.fencing.may_pass(wanted.is_fenced);
        // If the lock were not idle, a node with a new connection would be asked now.
        let is_doubted = self.voters.iter().any(|voter| voter.recheck_at.is_some_and(|at| at <= now));
        fits && !is_doubted
            && !self.is_contended()
            && self.is_passable_to(wanted.is_kept, now)
            && self.hold_period.is_fresh(now)
    }
}
