//! Downgrade of an exclusive lock to a shared one.
//!
//! 1. The call becomes a reader *before* the first node is informed. Until the nodes know, no other call shares the
//!    lock with it.
//! 2. Every node that has voted is informed by an extension in the new mode, and all further commands use that mode. A
//!    node that cannot be informed now keeps the lock exclusive until it can be, which is stricter.
//! 3. The leases are unchanged: every proof stays valid.
//! 4. The token is not passed on and does not linger. The next call of the process wants the lock exclusively, and
//!    waits for the readers.

use super::Candidate;
use super::next::Outgoing;
use crate::time::clock::Instant;

impl Candidate {
    /// Makes the lock shared from now on.
    pub(crate) const fn lower(&mut self) {
        self.hold_period.lower();
    }

    /// Returns `true` if the token has downgraded its exclusive lock.
    pub(crate) const fn is_lowered(&self) -> bool {
        self.hold_period.is_lowered()
    }

    /// Informs every node that the lock is shared: at once, or as soon as possible.
    pub(crate) fn send_downgrade(&mut self, now: Instant, mut send: impl FnMut(Outgoing)) {
        if !self.is_held(now) {
            return;
        }
        for index in 0..self.voters.len() {
            let Some(voter) = self.voters.get(index) else { continue };
            let is_told = voter.vote.is_granted() && voter.is_open() && !self.is_late_claim(voter);
            if let Some(voter) = self.voters.get_mut(index).filter(|_| !is_told) {
                voter.schedule_recheck(now);
            }
            let rest = self.voters.get(index).filter(|_| is_told).and_then(|voter| self.rest(voter, now));
            if let Some(ttl) = rest {
                self.ask(index, self.extension_verb(ttl), None, now, &mut send);
            }
        }
    }
}
