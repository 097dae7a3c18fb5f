//! Entering with a permit, while another token of this process owns the admission lock.

use super::state::Sleeper;
use super::{Acquisition, Calls};
use crate::client::timers::{sleep, timeout};
use crate::lock::OwnerToken;
use crate::protocol::candidate::{Counted, Entering, PATIENCE_BEHIND, Phase, Wanted};
use crate::protocol::command::Subject;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::any::Any;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

impl Acquisition {
    /// Asks every node for a permit and for the permit holders, while `admission` belongs to this process.
    pub(crate) fn ask_for_permit(&self, admission: &Self) {
        admission.state().rare().is_freed = false;
        self.send_enter(admission);
    }

    /// Handles taken permits: from now on, and also for existing entries, the entries of this token last no longer than
    /// the lease of the admission lock. A process that dies while it waits then blocks others only with its admission lock.
    pub(crate) fn enter_briefly(&self, admission: &Self) {
        let is_new = {
            let mut state = self.state();
            state.take_in(self.shared.clock);
            state.candidate.enter_briefly()
        };
        if is_new {
            // No call waits for the answers to this question, so a permit that was released since the last one is still
            // news.
            self.send_enter(admission);
        }
    }

    /// Excludes the token `share` of this process from the counted permits.
    pub(crate) fn set_share_beside(&self, share: OwnerToken) {
        self.state().candidate.set_share_beside(share);
    }

    fn send_enter(&self, admission: &Self) {
        let stands: Vec<bool> = {
            let mut state = admission.state();
            state.take_in(self.shared.clock);
            state.candidate.mark_as_admission();
            (0..self.shared.nodes.len()).map(|index| state.candidate.can_request_permits_at(index)).collect()
        };
        let (mut state, now) = (self.state(), self.now());
        state.take_in(self.shared.clock);
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        let stands = |index: usize| stands.get(index).is_some_and(|stands| *stands);
        candidate.enter(*admission.token(), now, stands, |out| sender.send(out));
    }

    /// Waits for the answers to that, for at most a node timeout, a part of the turn, and the `limit` of a waiting
    /// call. A call that does not wait has no limit. If the token is admitted, it has its permit from here on.
    pub(crate) async fn enter(&self, admission: &Self, permits: u32, limit: Option<Instant>, waits: bool) -> Entering {
        let patience = self.state().candidate.patience_at_admission();
        // If the token has to give way, it waits once more, unless the call is over by that time.
        let looks = if waits { PATIENCE_BEHIND } else { 1 };
        for _ in 0..looks {
            let entered = poll_fn(|cx| {
                self.state().poll(cx, self.shared.clock);
                match self.entered(admission, permits) {
                    Entering::Open => Poll::Pending,
                    entering => Poll::Ready(entering),
                }
            });
            let rest = limit.map_or(patience, |limit| limit.since(self.now()).min(patience));
            let entering = match timeout(rest, entered).await {
                Ok(entering) => entering,
                // Nodes without an answer are late now.
                Err(_) => self.entered(admission, permits),
            };
            if entering != Entering::Open {
                return entering;
            }
        }
        Entering::Unanswered
    }

    /// Requests a whole lease from every node in place of the brief one of the admission, and waits for no answer.
    pub(crate) fn extend_claims(&self) {
        let (mut state, now) = (self.state(), self.now());
        state.take_in(self.shared.clock);
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        candidate.extend(None, now, |out| sender.send(out));
    }

    /// Processes the answers to the extensions of claims, because a body may have ended before they arrived.
    pub(crate) fn process_extension_replies(&self) {
        let mut state = self.state();
        if state.candidate.claimed_until().is_some() {
            state.take_in(self.shared.clock);
        }
    }

    /// Notifies the permit holders that the nodes have reported that a call waits for a permit. A token that its
    /// process does not know any longer is then released.
    pub(crate) fn notify_permit_holders(&self) {
        if !self.shared.rules.apply(Rule::PermitsAreAskedAfter) {
            return;
        }
        let named = self.state().candidate.named();
        for (index, token) in named {
            if let Some(node) = self.shared.nodes.get(index) {
                node.node().notify_freed(&Subject::new(self.key().clone(), token));
            }
        }
    }

    /// Returns the progress of the token, which begins to hold when it is admitted. The other permit holders are
    /// recorded at the same moment, so that no permit is passed on with older counts.
    fn entered(&self, admission: &Self, permits: u32) -> Entering {
        // Read first, because the replies count only while the admission lock is ours.
        let is_ours = admission.is_provably_held() || !self.shared.rules.apply(Rule::ListsEndWithTheAdmissionLock);
        let (mut gate, mut state, now) = (admission.lock(), self.lock(), self.now());
        match state.candidate.entering(permits, now) {
            Entering::Admitted if !is_ours => Entering::Unanswered,
            Entering::Admitted => {
                state.candidate.hold(now);
                gate.rare().counted = state.candidate.count(Some(*self.token()), now);
                Entering::Admitted
            }
            Entering::Full { first_end } => {
                gate.rare().counted = state.candidate.count(None, now);
                Entering::Full { first_end }
            }
            entering => entering,
        }
    }

    /// Tries to hand the permit to the next call of this process, which wants one of `permits`, when these are
    /// `counted`. On success, returns the users of the permit to wake after every mutex is free, because they do not
    /// have it any longer.
    pub(crate) fn pass_permit(&self, wanted: Wanted, permits: u32, counted: &Counted) -> Option<Calls> {
        let mut state = self.lock();
        let now = self.now();
        let before = (state.candidate.held_since(), state.candidate.has_ended(now));
        let budget = self.shared.policy.local_budget;
        state.candidate.pass_permit(self.token(), (wanted, permits), counted, budget, now).then(|| {
            let news = self.pass_present(&mut state, before, now);
            state.watchers.call();
            state.watchers.called().with(news)
        })
    }

    /// Calls `pass` with the permit holders that were counted under the admission lock with this token; until it returns, no
    /// other call enters. Returns `None` if they are not known, or if new waiters for the admission lock would not be
    /// noticed.
    pub(crate) fn with_counted_holders<T>(&self, pass: impl FnOnce(&Counted) -> Option<T>) -> Option<T> {
        let hears_others = self.hears_others();
        let (mut state, now) = (self.lock(), self.now());
        let stands =
            state.candidate.phase() == Phase::Holding && state.candidate.held_until().is_some_and(|end| now < end);
        if !stands {
            return None;
        }
        let contended_since = state.candidate.contended_since();
        let mut counted = state.rare().counted.clone().filter(|_| contended_since.is_some() || hears_others)?;
        counted.contended_since = contended_since;
        pass(&counted)
    }

    /// Stores data for the next call of this process with the token. If there is none, the data is dropped after the
    /// token.
    pub(crate) fn accompany(&self, companion: impl Any + Send) {
        let before = self.state().rare().companion.replace(Box::new(companion));
        drop(before);
    }

    /// Returns the data that the previous call has left with the token.
    pub(crate) fn companion<C: Any>(&self) -> Option<C> {
        let companion = self.state().take_companion()?;
        companion.downcast().ok().map(|companion| *companion)
    }

    /// Returns `true` if the token provably has its lock.
    pub(crate) fn is_provably_held(&self) -> bool {
        self.lease_left().is_some_and(|left| !left.is_zero())
    }

    /// Waits until a permit is given back, until the time `until`, or until the manager is shut down. Called on the
    /// token of the admission lock.
    pub(crate) async fn wait_until_permit_freed(&self, until: Instant) {
        let changed = &self.shared.changed;
        let mut change = pin!(changed.notified());
        let mut timer = pin!(sleep(until.since(self.now())));
        poll_fn(|cx| {
            // Before the check, so that no later message of an in-memory node is missed.
            while change.as_mut().poll(cx).is_ready() {
                change.set(changed.notified());
            }
            self.shared.nodes.iter().for_each(|node| node.node().deliver());
            let mut state = self.state();
            if state.rare().is_freed || self.shared.is_closed() {
                return Poll::Ready(());
            }
            state.sleeper = Some(Sleeper { waker: cx.waker().clone(), until });
            drop(state);
            timer.as_mut().poll(cx)
        })
        .await;
    }
}
