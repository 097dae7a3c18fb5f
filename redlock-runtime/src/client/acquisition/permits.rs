//! Entering with a permit, while another token of this process stands in the turnstile.

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
    /// Asks every node for a permit and for those who have one, while `turnstile` is this process's.
    pub(crate) fn ask_for_permit(&self, turnstile: &Self) {
        turnstile.state().rare().is_freed = false;
        self.send_enter(turnstile);
    }

    /// All permits are taken: the entries that some nodes have given become as short as the lease of the turnstile, and so do those that
    /// are asked for from now on. A process that dies while it waits keeps others out by nothing else than its turnstile.
    pub(crate) fn enter_briefly(&self, turnstile: &Self) {
        let is_new = {
            let mut state = self.state();
            state.take_in(self.shared.clock);
            state.candidate.enter_briefly()
        };
        if is_new {
            // No call waits for the answers to this question, so a permit that was released since the last one still counts as news.
            self.send_enter(turnstile);
        }
    }

    /// The token `share` of this process is none of those that count against the permit.
    pub(crate) fn is_beside(&self, share: OwnerToken) {
        self.state().candidate.is_beside(share);
    }

    fn send_enter(&self, turnstile: &Self) {
        let stands: Vec<bool> = {
            let mut state = turnstile.state();
            state.take_in(self.shared.clock);
            state.candidate.stand_in_turnstile();
            (0..self.shared.nodes.len()).map(|index| state.candidate.may_stand_at(index)).collect()
        };
        let (mut state, now) = (self.state(), self.now());
        state.take_in(self.shared.clock);
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        let stands = |index: usize| stands.get(index).is_some_and(|stands| *stands);
        candidate.enter(*turnstile.token(), now, stands, |out| sender.send(out));
    }

    /// Waits for what the nodes say of that, no longer than a node timeout, nor than a part of the turn, nor than the `limit` of a call
    /// that waits; who does not wait has none. Where the token is admitted, it has its permit from here on.
    pub(crate) async fn enter(&self, turnstile: &Self, permits: u32, limit: Option<Instant>, waits: bool) -> Entering {
        let patience = self.state().candidate.patience_at_turnstile();
        // Where it has to give way, it looks once more, unless the call is over by then.
        let looks = if waits { PATIENCE_BEHIND } else { 1 };
        for _ in 0..looks {
            let entered = poll_fn(|cx| {
                self.state().poll(cx, self.shared.clock);
                match self.entered(turnstile, permits) {
                    Entering::Open => Poll::Pending,
                    entering => Poll::Ready(entering),
                }
            });
            let rest = limit.map_or(patience, |limit| limit.since(self.now()).min(patience));
            let entering = match timeout(rest, entered).await {
                Ok(entering) => entering,
                // Those who have not answered by now are late.
                Err(_) => self.entered(turnstile, permits),
            };
            if entering != Entering::Open {
                return entering;
            }
        }
        Entering::Unanswered
    }

    /// Asks every node for a whole lease in place of the brief one by which the token was admitted, and waits for no answer.
    pub(crate) fn extend_claims(&self) {
        let (mut state, now) = (self.state(), self.now());
        state.take_in(self.shared.clock);
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        candidate.extend(None, now, |out| sender.send(out));
    }

    /// Takes in the answers to the extensions of claims: a body may have ended before they came.
    pub(crate) fn take_in_extensions(&self) {
        let mut state = self.state();
        if state.candidate.claimed_until().is_some() {
            state.take_in(self.shared.clock);
        }
    }

    /// Tells those who have permits, as the nodes have named them, that somebody waits for one: a token that its process does not know any
    /// more is given back then.
    pub(crate) fn ask_after_others(&self) {
        if !self.shared.rules.apply(Rule::PermitsAreAskedAfter) {
            return;
        }
        let named = self.state().candidate.named();
        for (index, token) in named {
            if let Some(node) = self.shared.nodes.get(index) {
                node.node().tell_freed(&Subject::new(self.key().clone(), token));
            }
        }
    }

    /// How far the token has come, which begins to hold when it is admitted. Whoever else has a permit is counted at the same moment,
    /// so that none is passed on by what was counted before.
    fn entered(&self, turnstile: &Self, permits: u32) -> Entering {
        // Read first: what the nodes say counts only while the turnstile is ours.
        let is_ours = turnstile.stands_there() || !self.shared.rules.apply(Rule::RollsEndWithTheTurnstile);
        let (mut gate, mut state, now) = (turnstile.lock(), self.lock(), self.now());
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

    /// Whether the next call of this process may have the permit, which has `wanted` one when so many may have a permit at a time and
    /// so many are `counted`. Then those who rely on it are to be woken, which have it no more, when no mutex is held any more.
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

    /// What `pass` makes of those who have permits, as the calls have counted them that stand in the turnstile with this token: until it
    /// is done, nobody else comes in. `None` when they are not known, and when others could come to the turnstile unheard.
    pub(crate) fn while_counted<T>(&self, pass: impl FnOnce(&Counted) -> Option<T>) -> Option<T> {
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

    /// The next call of this process that has the token finds that with it. Should none have it, that ends after the token.
    pub(crate) fn accompany(&self, companion: impl Any + Send) {
        let before = self.state().rare().companion.replace(Box::new(companion));
        drop(before);
    }

    /// What the call before has left with the token.
    pub(crate) fn companion<C: Any>(&self) -> Option<C> {
        let companion = self.state().take_companion()?;
        companion.downcast().ok().map(|companion| *companion)
    }

    /// Whether the token provably has its lock.
    pub(crate) fn stands_there(&self) -> bool {
        self.lease_left().is_some_and(|left| !left.is_zero())
    }

    /// Waits until somebody gives a permit back, or until then, and no longer than until the manager is shut down. The token is that
    /// which stands in the turnstile.
    pub(crate) async fn until_freed(&self, until: Instant) {
        let changed = &self.shared.changed;
        let mut change = pin!(changed.notified());
        let mut timer = pin!(sleep(until.since(self.now())));
        poll_fn(|cx| {
            // Before the look, so that nothing that nodes in memory say after it is missed.
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
