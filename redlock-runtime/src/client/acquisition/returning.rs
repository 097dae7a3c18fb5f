//! Permit whose token returns to the admission lock for its missing votes.

use super::{Acquisition, NO_MEMBER};
use crate::client::timers::timeout;
use crate::protocol::candidate::{Candidate, turn};
use crate::protocol::command::Subject;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

impl Acquisition {
    /// Returns `true` if the permit lacks votes that nodes may give, and no task handles that yet. From now on, the
    /// caller handles it, until [`clear_returning`](Self::clear_returning).
    pub(crate) fn comes_back(&self) -> bool {
        let mut state = self.state();
        if self.shared.is_closed() || !state.candidate.comes_back(self.now()) {
            return false;
        }
        !std::mem::replace(&mut state.rare().comes_back, true)
    }

    pub(crate) fn clear_returning(&self) {
        self.state().rare().comes_back = false;
    }

    /// Creates a new token for the admission lock, with its own local queue. Calls of this process that count permits under
    /// their own token would not see votes given under theirs. The new token is queued ahead of all requests after the
    /// permit, because it takes no permit from them.
    pub(crate) fn way_back(&self) -> Self {
        let subject = Subject::new(self.key().admission(), self.token().again());
        let mut way = Self::new(&self.shared, subject, turn(self.ttl()), self.now());
        way.stands_beside = true;
        way
    }

    /// Asks the nodes for the missing votes under `admission`, and waits for the answers. The present voters are asked
    /// first, and a quorum of them has to confirm the permit under `admission`. Otherwise, a vote may have been taken
    /// away, and other calls may have entered since. If too few confirm it, the attempt is repeated after the next
    /// renewal.
    pub(crate) async fn ask_for_votes(&self, admission: &Self) {
        let patience = self.lock().candidate.patience_at_admission();
        // The body may wait for answers as well, and an answer wakes one task.
        let Ok(_alone) = timeout(patience, self.alone()).await else { return };
        self.ask_voters();
        // Other calls wait for the admission lock, and must not wait for a silent node whose answer changes nothing.
        let is_confirmed = |permit: &Candidate| permit.is_confirmed_by_quorum() || permit.is_answered();
        self.while_held(self.wait_for_enough_replies(patience, is_confirmed)).await;
        if admission.is_provably_held() && self.is_confirmed() {
            self.ask_for_permit(admission);
            self.while_held(self.wait_for_enough_replies(patience, Candidate::has_all_permit_replies)).await;
        }
    }

    /// Returns `true` if votes are still missing, and a quorum has confirmed the others.
    fn is_confirmed(&self) -> bool {
        let (mut state, now) = (self.state(), self.now());
        state.take_in(self.shared.clock);
        state.candidate.comes_back(now) && state.candidate.is_confirmed_by_quorum()
    }

    fn ask_voters(&self) {
        let (mut state, now) = (self.state(), self.now());
        state.take_in(self.shared.clock);
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        candidate.ask_voters(now, |out| sender.send(out));
    }

    /// Returns the result of `work`, or `None` if the lock ends before.
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

/// Watcher of a loss, which is removed on drop.
struct Watcher<'a> {
    acquisition: &'a Acquisition,
    number: Option<u32>,
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.number.into_iter().for_each(|number| self.acquisition.forget_watcher(number));
    }
}
