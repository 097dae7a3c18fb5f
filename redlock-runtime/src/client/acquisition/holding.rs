//! A lock that is held: what its body and the watchdog ask of it, and passing it on.

use super::present::{News, Present};
use super::state::State;
use super::state_guard::StateGuard;
use super::{Acquisition, Calls};
use crate::error::{LockError, LossCause};
use crate::observe::events;
use crate::protocol::candidate::{Candidate, Look, Loss, Phase, Wanted};
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::rules::Rule;
use crate::protocol::timing::STOPPING;
use crate::stats::SiteId;
use crate::time::clock::Instant;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;
use tracing::Span;

impl Acquisition {
    /// A call of that site has the lock from now on, with options of its own, and with a `span` if anybody wants to see it.
    /// Returns for how long it is counted on as things are.
    pub(crate) fn begin(&self, options: HoldOptions, site: SiteId, span: Option<Span>, now: Instant) -> Duration {
        let mut state = self.state();
        let counted_for = state.candidate.begin(options, now);
        state.present = Some(Present::new(site));
        if let Some(span) = span {
            state.rare().span = Some(Arc::new(span));
        }
        self.answer(&mut state);
        counted_for
    }

    /// How many are woken when the lock is lost.
    #[cfg(test)]
    pub(crate) fn watcher_count(&self) -> usize {
        self.state().watchers.count()
    }

    /// Wakes those who rely on the lock, to look again.
    pub(crate) fn call_watchers(&self) {
        self.state().watchers.call();
    }

    /// Wakes those who rely on what that `member` has of the lock, and no others.
    pub(crate) fn call_watchers_of(&self, member: u32) {
        self.state().watchers.call_those_of(member);
    }

    /// How much longer the lock is provably ours, for the present call.
    pub(crate) fn validity(&self) -> Duration {
        let mut state = self.state();
        let validity = |state: &State| {
            // The time is read after the answers: it may only err towards a shorter validity.
            state.candidate.held_until().map_or(Duration::ZERO, |end| end.since(self.now()))
        };
        match validity(&state) {
            Duration::ZERO => {
                state.take_in(self.shared.clock);
                validity(&state)
            }
            // The answers to the extensions of claims may end it, and have woken whoever waited for the lock.
            _ if state.candidate.claimed_until().is_some() => {
                state.take_in(self.shared.clock);
                validity(&state)
            }
            // Other answers that came since can only add to it, and matter when it is used up.
            proven => proven,
        }
    }

    /// Whether it would not be held for as long without claims, the extensions of which are on their way.
    pub(crate) fn stands_on_claims(&self) -> bool {
        self.state().candidate.stands_on_claims_until(self.now()).is_some()
    }

    /// For how long the lock can be left alone as things are.
    pub(crate) fn counted_for(&self, now: Instant) -> Duration {
        self.state().candidate.counted_for(now)
    }

    /// How much longer the lock is held, if it is or was.
    pub(crate) fn lease_left(&self) -> Option<Duration> {
        let is_holding = self.state().candidate.phase() == Phase::Holding;
        is_holding.then(|| self.validity())
    }

    /// Whether the lock was held and its lease has run out. Those who rely on the lock may have to be woken when no mutex is
    /// held any more.
    pub(crate) fn is_over(&self) -> (bool, Calls) {
        let mut state = self.lock();
        if state.candidate.is_over(self.now()) {
            // An answer that is here may have made the lease longer.
            state.take_in(self.shared.clock);
        }
        (state.candidate.is_over(self.now()), state.watchers.called())
    }

    /// Whether the next call in this process, which has `wanted` the lock, may go on with the token. Then those who rely on
    /// the lock are to be woken, which have it no more, when no mutex is held any more.
    pub(crate) fn pass(&self, wanted: Wanted) -> Option<Calls> {
        let mut state = self.lock();
        // The calls in line wait for whoever has the lock, and a token that asks does not.
        let waits = state.candidate.phase() != Phase::Waiting || !self.token().asks();
        let now = self.now();
        let before = (state.candidate.held_since(), state.candidate.has_ended(now));
        let passes = waits && state.candidate.pass(wanted, self.shared.policy.local_budget, now);
        passes.then(|| {
            let news = self.pass_present(&mut state, before, now);
            state.watchers.call();
            state.watchers.called().with(news)
        })
    }

    /// Another call of this process goes on without the token, because the lease has run out. Those who rely on the lock are
    /// to be woken when no mutex is held any more.
    pub(crate) fn supersede(&self) -> Calls {
        let (mut state, now) = (self.lock(), self.now());
        let lost = self.end_present(&mut state, "released", now);
        state.candidate.supersede();
        if self.shared.rules.apply(Rule::SupersededMayWork) {
            self.shared.revocations.superseded(*self.token());
            state.rare().says_that_it_ends = true;
        }
        state.watchers.call();
        let companion = state.take_companion();
        state.watchers.called().with(lost).ending(companion)
    }

    /// What `see` makes of the lock when the answers that are here were taken in, and of whether somebody wants to know when it is
    /// lost.
    pub(crate) fn look<S>(&self, see: impl FnOnce(&Candidate, bool) -> S) -> S {
        let mut state = self.state();
        state.take_in(self.shared.clock);
        let is_watched = !state.watchers.is_empty() || state.present.as_ref().is_some_and(Present::is_to_be_told);
        see(&state.candidate, is_watched)
    }

    /// Asks for what is due, for so long before the time as is `early` for a ttl, without waiting for the answers. A lock that is lost
    /// is made known instead. Returns for how long the answers are to be looked for: a node that is silent for longer is asked again
    /// in its turn. And what there is to tell, which is told when it is dropped: not before the next lock is renewed.
    ///
    /// A lock whose leases are started anew is held for long, so that its holder is to hear when somebody breaks it. One that only
    /// asks because there is a new connection is not.
    pub(crate) fn renew(&self, now: Instant, early: fn(Duration) -> Duration) -> (Duration, Option<Box<News>>) {
        let mut state = self.state();
        state.take_in(self.shared.clock);
        let soon = now.after(early(state.candidate.terms().ttl));
        let wait = self.answers_matter_for(&state);
        let is_held_for_long = state.candidate.is_round_due(soon);
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        let news = if candidate.renew(now, soon, |out| sender.send(out)) {
            self.note_risk(&mut state, now)
        } else {
            state.watchers.call();
            self.note_loss(&mut state, now)
        };
        drop(state);
        // Under no mutex, because others are woken by it.
        if is_held_for_long {
            self.shared.listen();
        }
        (wait, news)
    }

    /// For how long the answers to a renewal matter. Whoever breaks the lock waits for them.
    fn answers_matter_for(&self, state: &State) -> Duration {
        let timeout = state.candidate.answers_matter_for(self.node_timeout_of(state));
        if state.candidate.is_revoked() { STOPPING.max(timeout) } else { timeout }
    }

    /// The state with the answers that are here, while this process listens if votes are lacking that are to be won back: who gives
    /// way publishes it, and takes a process that does not listen for one that is gone.
    fn heard(&self) -> StateGuard<'_> {
        let mut state = self.state();
        state.take_in(self.shared.clock);
        if state.candidate.lacks_votes() {
            // Under no mutex, because others are woken by it.
            drop(state);
            self.shared.listen();
            state = self.state();
            state.take_in(self.shared.clock);
        }
        state
    }

    /// Takes in the answers to a renewal. What `see` makes of the lock then; and what there is to tell, as for
    /// [`renew`](Self::renew).
    pub(crate) fn hear<S>(&self, see: impl FnOnce(&Candidate, Instant) -> S) -> (S, Option<Box<News>>) {
        let mut state = self.heard();
        // Not before the answers were taken in: what they make due is due by now.
        let now = self.now();
        let is_over = state.candidate.is_over(now);
        let lost = if is_over { self.note_loss(&mut state, now) } else { None };
        if is_over {
            state.watchers.call();
        }
        // A node that has just said that it does not have the lock is asked for it soon, and the others at once.
        if state.candidate.look(now, now, false) == Look::Due {
            let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
            candidate.renew(now, now, |out| sender.send(out));
        }
        self.send_next(&mut state, now);
        (see(&state.candidate, now), lost)
    }

    /// There is a new connection to node number `index`. A holder asks there soon.
    pub(crate) fn connected(&self, index: usize) {
        let mut state = self.state();
        // What the connection before owed is answered, and must not keep the node from being asked.
        state.take_in(self.shared.clock);
        if self.is_served_anew(index, &mut state) {
            state.candidate.connected(index, self.now());
        }
    }

    /// Whether the new connection to node number `index` is one for these names: a node that has parts has many, and makes a new
    /// one whenever any of them is restarted.
    fn is_served_anew(&self, index: usize, state: &mut State) -> bool {
        let parts = self.shared.nodes.get(index).filter(|node| node.node().has_parts());
        parts.is_none_or(|node| state.candidate.is_served_anew(index, node.epoch(self.subject.route())))
    }

    /// The clock of node number `index` went ahead by at most `step`.
    pub(crate) fn clock_stepped(&self, index: usize, step: Duration) {
        self.state().clock_stepped(index, step, self.shared.clock);
    }

    /// How much longer the lock is held, after having seen to it that `waker` is woken when it is lost, or when that `member` gives its
    /// part back.
    pub(crate) fn watch(&self, watcher: &mut Option<u32>, member: u32, waker: &Waker) -> Duration {
        self.state().watchers.watch(watcher, member, waker);
        self.validity()
    }

    /// Whoever watches as `watcher` does not want to know any more.
    pub(crate) fn forget_watcher(&self, watcher: u32) {
        self.state().watchers.forget(watcher);
    }

    /// The error for a lock that is not held any more, for whoever has noticed that.
    pub(crate) fn lost(&self) -> LockError {
        let (mut state, now) = (self.state(), self.now());
        let (error, news) = (self.lost_by(&state), self.note_loss(&mut state, now));
        drop(state);
        drop(news);
        error
    }

    /// The error for a lock that was given back before.
    pub(crate) fn released(&self) -> LockError {
        self.loss(&self.state(), LossCause::Released)
    }

    /// The error for a nested call that had the lock as well, from `since` to `until`, or for the call that has the turn. The
    /// nodes say why if there is no other `cause`.
    pub(crate) fn lost_between(&self, since: Option<Instant>, until: Instant, cause: Option<LossCause>) -> LockError {
        let state = self.state();
        let mut error = self.lost_by(&state);
        if let LockError::Lost { held_for, cause: by_the_nodes, .. } = &mut error {
            *held_for = since.map_or(*held_for, |since| state.candidate.held_between(since, until));
            *by_the_nodes = cause.unwrap_or_else(|| by_the_nodes.clone());
        }
        error
    }

    /// The error for a lock that is not held any more, by what is known of it now.
    pub(super) fn lost_by(&self, state: &State) -> LockError {
        self.loss(state, self.cause(state, self.now()))
    }

    /// Why the lock is not held any more.
    pub(super) fn cause(&self, state: &State, now: Instant) -> LossCause {
        match state.candidate.loss(now) {
            Loss::Released => LossCause::Released,
            Loss::MaxHold => LossCause::MaxHold,
            Loss::Taken => LossCause::Taken,
            Loss::Revoked => state.revoked_by().map_or(LossCause::Taken, |by| LossCause::Revoked { by: Box::new(by) }),
            Loss::NotRenewed => LossCause::NotRenewed { causes: self.failures(state.candidate.reasons(now)) },
            Loss::Expired => LossCause::Expired,
        }
    }

    /// A body goes on although its lock is lost: nobody is told that but the log.
    pub(crate) fn outlived(&self) {
        self.shared.outlived.fetch_add(1, Ordering::Relaxed);
        events::outlived(self.shared.told(self.key()));
    }

    pub(super) fn loss(&self, state: &State, cause: LossCause) -> LockError {
        LockError::Lost { key: self.key().clone(), held_for: state.candidate.held_for(self.now()), cause }
    }
}
