//! Sharing a lock from now on that the call had alone.

use super::Acquisition;
use crate::protocol::candidate::Phase;

impl Acquisition {
    /// Others may share the lock from now on. The call has it as one of them before the first node hears of it; a node that
    /// cannot be asked now is told when it can. `false` when there is nothing to share, or the call has that `turn` no more.
    /// Before anybody can share it, it is noted.
    pub(crate) fn lower(&self, turn: u32, note: impl FnOnce()) -> bool {
        let (mut state, now) = (self.state(), self.now());
        // Asked under the mutex: the token passes to another call under it, and never when it is lowered.
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
        candidate.tell_lowered(now, |out| sender.send(out));
        true
    }
}
