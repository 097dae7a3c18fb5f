//! Downgrade of an exclusive lock to a shared one.

use super::Acquisition;
use crate::protocol::candidate::Phase;

impl Acquisition {
    /// Downgrades the lock. The call becomes a reader before the first node is informed; a node that cannot be asked
    /// now is informed later. Returns `false` if the lock is not exclusive, or the call does not have that `turn`.
    /// `note` is called before any other call can share the lock.
    pub(crate) fn lower(&self, turn: u32, note: impl FnOnce()) -> bool {
        let (mut state, now) = (self.state(), self.now());
        // Checked under the mutex: the token passes to another call under it, and never after a downgrade.
        if self.turn() != turn {
            return false;
        }
        let is_alone = !self.subject.is_shared() && !state.candidate.is_lowered();
        if !is_alone || state.candidate.phase() != Phase::Holding {
            return false;
        }
        note();
        state.take_in(self.shared.clock);
        state.candidate.lower();
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        candidate.send_downgrade(now, |out| sender.send(out));
        true
    }
}
