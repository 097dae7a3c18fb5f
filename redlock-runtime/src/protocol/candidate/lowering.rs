//! Sharing a lock from now on that the token had alone.
//!
//! 1. The call has it as one of several *before* the first node is told: until then, nobody shares it with the call.
//! 2. Every node that has voted is told by an extension, which names the new mode as all further commands do. A node that
//!    cannot be told now keeps the lock for the token alone until it can, which is the stricter of both.
//! 3. The leases are what they were: nothing that was proven ends by it.
//! 4. The token is passed on to nobody and does not linger: who comes next in the process wants the lock alone, and waits for
//!    those who share it.

use super::Candidate;
use super::next::Outgoing;
use crate::time::clock::Instant;

impl Candidate {
    /// The lock is shared from now on.
    pub(crate) const fn lower(&mut self) {
        self.hold_period.lower();
    }

    /// Whether others may share the lock that the token had alone.
    pub(crate) const fn is_lowered(&self) -> bool {
        self.hold_period.is_lowered()
    }

    /// Tells every node that the lock is shared: at once, or as soon as it can be.
    pub(crate) fn tell_lowered(&mut self, now: Instant, mut send: impl FnMut(Outgoing)) {
        if !self.is_held(now) {
            return;
        }
        for index in 0..self.voters.len() {
            let Some(voter) = self.voters.get_mut(index) else { continue };
            let is_told = voter.vote.is_granted() && voter.is_open();
            if !is_told {
                voter.ask_again(now);
            }
            let rest = self.voters.get(index).filter(|_| is_told).and_then(|voter| self.rest(voter, now));
            if let Some(ttl) = rest {
                self.ask(index, self.extension_verb(ttl), None, now, &mut send);
            }
        }
    }
}
