//! A lock that stays held without a call; what is decided about it is in `protocol/candidate/idling`.

use super::state::{Asker, State};
use super::{Acquisition, Calls};
use crate::lock::{LockKey, OwnerToken};
use crate::protocol::candidate::Wanted;
use crate::protocol::command::Subject;
use crate::time::clock::Instant;

impl Acquisition {
    /// Whether the present call wants the lock to be idle after it.
    pub(crate) fn lingers(&self) -> bool {
        self.lock().candidate.lingers()
    }

    /// Leaves the lock without a call, if it may be and whoever wants it meanwhile will be heard. Until when; and those who
    /// are to be woken when no mutex is held any more.
    pub(crate) fn keep(&self, now: Instant) -> Option<(Instant, Calls)> {
        let mut state = self.lock();
        state.take_in(self.shared.clock);
        // Who has asked and was not told stands in the queues, and would take the lock for one that is in use.
        let is_asked = state.asker().is_some_and(|asker| !asker.is_told);
        let before = (state.candidate.held_since(), state.candidate.has_ended(now));
        let until = if self.hears_others() && !is_asked { state.candidate.keep(now) } else { None }?;
        Some((until, Calls::default().with(self.pass_present(&mut state, before, now))))
    }

    /// Gives an idle lock to the next call, which has `wanted` it, if that can have it as it is.
    pub(crate) fn retake(&self, wanted: Wanted, now: Instant) -> bool {
        let mut state = self.lock();
        state.take_in(self.shared.clock);
        state.candidate.retake(wanted, now)
    }

    /// The token `by` asks by node number `index` whether a body runs, and is told when one does: now, or as soon as it begins.
    /// Once: it asks by every node.
    pub(super) fn asked(&self, state: &mut State, index: usize, by: OwnerToken) {
        if !state.asker().is_some_and(|asker| asker.is_told && asker.token == by) {
            state.rare().asker = Some(Asker { token: by, index, is_told: false });
            self.answer(state);
        }
    }

    /// Tells whoever has asked that a body runs, if one does.
    pub(super) fn answer(&self, state: &mut State) {
        let has_body = state.candidate.has_body();
        if let Some(asker) = state.asker().filter(|asker| has_body && !asker.is_told)
            && let Some(node) = self.shared.nodes.get(asker.index)
        {
            // Which of the names it wants is not known here; of what it does not want, nobody hears.
            let tell = |(key, _): (&LockKey, _)| node.node().tell_busy(&Subject::new(key.clone(), asker.token));
            asker.is_told = self.subject.wanted().map(tell).fold(false, |is_told, told| is_told | told);
        }
    }

    /// Whether others are known to want the lock.
    pub(crate) fn is_contended(&self) -> bool {
        self.lock().candidate.is_contended()
    }

    /// Whether the notices of so many nodes arrive that whoever asks a majority asks one of them.
    pub(crate) fn hears_others(&self) -> bool {
        let heard = self.shared.nodes.iter().filter(|node| node.node().is_listening_for(self.subject.route()));
        let quorum = self.shared.quorum;
        heard.count() > quorum.nodes - quorum.needed
    }
}
