//! Lock that stays held without a call; `protocol/candidate/idling` makes the decisions.

use super::state::{Asker, State};
use super::{Acquisition, Calls};
use crate::lock::{LockKey, OwnerToken};
use crate::protocol::candidate::Wanted;
use crate::protocol::command::Subject;
use crate::time::clock::Instant;

impl Acquisition {
    /// Returns `true` if the present call wants the lock to become idle after it.
    pub(crate) fn lingers(&self) -> bool {
        self.lock().candidate.lingers()
    }

    /// Leaves the lock idle, if that is allowed and the process would be notified of new waiters. Returns the end of
    /// the idle time, and the calls to wake after every mutex is free.
    pub(crate) fn keep(&self, now: Instant) -> Option<(Instant, Calls)> {
        let mut state = self.lock();
        state.take_in(self.shared.clock);
        // An asking token without an answer is in the queues, and could take the idle lock for a used one.
        let is_asked = state.asker().is_some_and(|asker| !asker.is_told);
        let before = (state.candidate.held_since(), state.candidate.has_ended(now));
        let until = if self.hears_others() && !is_asked { state.candidate.keep(now) } else { None }?;
        Some((until, Calls::default().with(self.pass_present(&mut state, before, now))))
    }

    /// Gives an idle lock to the next call, which has `wanted` it, if that call can use it unchanged.
    pub(crate) fn retake(&self, wanted: Wanted, now: Instant) -> bool {
        let mut state = self.lock();
        state.take_in(self.shared.clock);
        state.candidate.retake(wanted, now)
    }

    /// Records that the token `by` asks through node number `index` if a body runs. It gets an answer when a body runs:
    /// now, or as soon as it begins. It gets only one answer, although it asks through every node.
    pub(super) fn asked(&self, state: &mut State, index: usize, by: OwnerToken) {
        if !state.asker().is_some_and(|asker| asker.is_told && asker.token == by) {
            state.rare().asker = Some(Asker { token: by, index, is_told: false });
            self.answer(state);
        }
    }

    /// Answers the asking token if a body runs.
    pub(super) fn answer(&self, state: &mut State) {
        let has_body = state.candidate.has_body();
        if let Some(asker) = state.asker().filter(|asker| has_body && !asker.is_told)
            && let Some(node) = self.shared.nodes.get(asker.index)
        {
            // The wanted names are not known here; messages about other names reach no call.
            let tell =
                |(key, _): (&LockKey, _)| node.node().notify_body_running(&Subject::new(key.clone(), asker.token));
            asker.is_told = self.subject.wanted().map(tell).fold(false, |is_told, told| is_told | told);
        }
    }

    /// Returns `true` if other tokens are known to want the lock.
    pub(crate) fn is_contended(&self) -> bool {
        self.lock().candidate.is_contended()
    }

    /// Returns `true` if the process hears enough nodes: every waiter at a majority notifies it through one of them.
    pub(crate) fn hears_others(&self) -> bool {
        let heard = self.shared.nodes.iter().filter(|node| node.node().is_listening_for(self.subject.route()));
        let quorum = self.shared.quorum;
        heard.count() > quorum.nodes - quorum.needed
    }
}
