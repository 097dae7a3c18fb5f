//! Sharing a lock from now on that the call had alone.

use super::Acquisition;
use crate::lock::Mode;
use crate::protocol::candidate::Phase;
use crate::protocol::command::Subject;
use std::sync::Arc;

impl Acquisition {
    /// Others may share the lock from now on. The call has it as one of them before the first node hears of it; a node that
    /// cannot be asked now is told when it can. `false` when there is nothing to share.
    pub(crate) fn lower(&self) -> bool {
        let (mut state, now) = (self.state(), self.now());
        if state.candidate.phase() != Phase::Holding || self.mode().is_shared() {
            return false;
        }
        let subject = || Arc::new(Subject::new(self.key().clone(), *self.token()).of_mode(Mode::Shared));
        let subject = self.lowered.get_or_init(subject);
        state.take_in(self.shared.clock);
        let (candidate, mut sender) = state.parts(&self.shared, subject, now);
        candidate.lower(now, |out| sender.send(out));
        true
    }
}
