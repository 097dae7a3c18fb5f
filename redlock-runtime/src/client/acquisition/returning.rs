//! A permit whose token comes back to the turnstile, for the votes that it lacks.

use super::{Acquisition, NO_MEMBER};
use crate::client::timers::timeout;
use crate::protocol::candidate::{Candidate, turn};
use crate::protocol::command::Subject;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

impl Acquisition {
    /// Whether it is a permit that lacks votes which nodes may give, and nobody stands in the turnstile for them yet: then somebody does
    /// from now on, until [`has_come_back`](Self::has_come_back).
    pub(crate) fn comes_back(&self) -> bool {
        let mut state = self.state();
        if self.shared.is_closed() || !state.candidate.comes_back(self.now()) {
            return false;
        }
        !std::mem::replace(&mut state.rare().comes_back, true)
    }

    pub(crate) fn has_come_back(&self) {
        self.state().rare().comes_back = false;
    }

    /// A new token for the turnstile, in a line of its own: those of this process who count the others there would not see the votes that
    /// are given to it by theirs. It stands there before all who came after the permit, since nobody else gets what it asks for.
    pub(crate) fn way_back(&self) -> Self {
        let subject = Subject::new(self.key().turnstile(), self.token().again());
        let mut way = Self::new(&self.shared, subject, turn(self.ttl()), self.now());
        way.stands_beside = true;
        way
    }

    /// Asks the nodes for the votes that it lacks, while `turnstile` is its own, and hears what they say. Those that have voted are asked
    /// before, and a quorum of them has to confirm it while `turnstile` is its own: somebody may have taken away what it counts on, and
    /// others may have come in since. Where too few do, it is tried again after the next renewal.
    pub(crate) async fn ask_for_votes(&self, turnstile: &Self) {
        let patience = self.lock().candidate.patience_at_turnstile();
        // The body may wait for answers as well, and an answer wakes one task.
        let Ok(_alone) = timeout(patience, self.alone()).await else { return };
        self.ask_voters();
        // Others wait for the turnstile: it is not theirs while a node is silent that changes nothing.
        let is_confirmed = |permit: &Candidate| permit.voters_have_confirmed() || permit.is_answered();
        self.while_held(self.until_heard(patience, is_confirmed)).await;
        if turnstile.stands_there() && self.is_confirmed() {
            self.ask_for_permit(turnstile);
            self.while_held(self.until_heard(patience, Candidate::has_heard_of_permit)).await;
        }
    }

    /// Whether votes are still lacking, and a quorum has confirmed the others.
    fn is_confirmed(&self) -> bool {
        let (mut state, now) = (self.state(), self.now());
        state.take_in(self.shared.clock);
        state.candidate.comes_back(now) && state.candidate.voters_have_confirmed()
    }

    fn ask_voters(&self) {
        let (mut state, now) = (self.state(), self.now());
        state.take_in(self.shared.clock);
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        candidate.ask_voters(now, |out| sender.send(out));
    }

    /// What `work` comes to, unless nobody has the lock any more before that.
    pub(crate) async fn while_held<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut watcher) = (pin!(work), Watcher { acquisition: self, number: None });
        poll_fn(|cx| {
            if self.watch(&mut watcher.number, NO_MEMBER, cx.waker()).is_zero() {
                return Poll::Ready(None);
            }
            work.as_mut().poll(cx).map(Some)
        })
        .await
    }
}

/// Whoever wants to know when the lock is lost. Dropped, it does not want to know any more.
struct Watcher<'a> {
    acquisition: &'a Acquisition,
    number: Option<u32>,
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.number.into_iter().for_each(|number| self.acquisition.forget_watcher(number));
    }
}
