//! Held lock: the operations of its body and of the watchdog, and passing it on.

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
    /// Gives the lock to a call of that site, with its own options, and with a `span` if spans are enabled. Returns the
    /// time within which the lock needs a check.
    pub(crate) fn begin(&self, options: HoldOptions, site: SiteId, span: Option<Span>, now: Instant) -> Duration {
        let mut state = self.state();
        let check_within = state.candidate.begin(options, now);
        state.present = Some(Present::new(site));
        if let Some(span) = span {
            state.rare().span = Some(Arc::new(span));
        }
        self.answer(&mut state);
        check_within
    }

    /// Returns the number of watchers of a loss.
    #[cfg(test)]
    pub(crate) fn watcher_count(&self) -> usize {
        self.state().watchers.count()
    }

    /// Wakes the watchers of the lock, to check it again.
    pub(crate) fn wake_watchers(&self) {
        self.state().watchers.call();
    }

    /// Wakes the watchers of that `member`, and no others.
    pub(crate) fn wake_watchers_of(&self, member: u32) {
        self.state().watchers.mark_called_for_member(member);
    }

    /// Returns the time for which the lock is still provably ours, for the present call.
    pub(crate) fn validity(&self) -> Duration {
        let mut state = self.state();
        let validity = |state: &State| {
            // The time is read after the answers: an error may only shorten the validity.
            state.candidate.held_until().map_or(Duration::ZERO, |end| end.since(self.now()))
        };
        match validity(&state) {
            Duration::ZERO => {
                state.take_in(self.shared.clock);
                validity(&state)
            }
            // Answers to the extensions of claims may end the lock, and have woken the task that waited for the lock.
            _ if state.candidate.claimed_until().is_some() => {
                state.take_in(self.shared.clock);
                validity(&state)
            }
            // Other new answers can only extend it, and matter when it is used up.
            proven => proven,
        }
    }

    /// Returns `true` if the lock would end earlier without claims, whose extensions are in flight.
    pub(crate) fn depends_on_claims(&self) -> bool {
        self.state().candidate.depends_on_claims_until(self.now()).is_some()
    }

    /// Returns the time within which the lock needs a check.
    pub(crate) fn check_within(&self, now: Instant) -> Duration {
        self.state().candidate.check_within(now)
    }

    /// Returns `true` if a body may begin on claims that are confirmed later.
    pub(crate) fn confirms_later(&self, now: Instant) -> bool {
        self.state().candidate.confirms_later(now)
    }

    /// Returns the time within which a claim that arrived while the lock was held needs the watchdog, if there is one.
    pub(crate) fn late_claim_within(&self, now: Instant) -> Option<Duration> {
        self.state().candidate.late_claim_within(now)
    }

    /// Records that another call of the process waits for the lock, which confirms it at once.
    pub(crate) fn set_followed(&self) {
        let (mut state, now) = (self.state(), self.now());
        if state.candidate.set_followed(now) {
            self.send_next(&mut state, now);
        }
    }

    /// Returns the remaining time of the lock, if it is or was held.
    pub(crate) fn lease_left(&self) -> Option<Duration> {
        let is_holding = self.state().candidate.phase() == Phase::Holding;
        is_holding.then(|| self.validity())
    }

    /// Returns `true` if the lock was held and its lease has ended. The returned calls must be woken after every mutex
    /// is free.
    pub(crate) fn check_over(&self) -> (bool, Calls) {
        let mut state = self.lock();
        if state.candidate.is_over(self.now()) {
            // An arrived answer may have extended the lease.
            state.take_in(self.shared.clock);
        }
        (state.candidate.is_over(self.now()), state.watchers.called())
    }

    /// Tries to hand the token to the next call of this process, which has `wanted` the lock. On success, returns the
    /// users of the lock to wake after every mutex is free, because they do not have it any longer.
    pub(crate) fn pass(&self, wanted: Wanted) -> Option<Calls> {
        let mut state = self.lock();
        // The local calls wait for the holder, and an asking token does not.
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

    /// Ends the lock for another call of this process that continues without the token, because the lease has ended.
    /// The returned users of the lock must be woken after every mutex is free.
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

    /// Processes the arrived answers. Returns the result of `see` for the lock; its second argument is `true` if a
    /// caller watches for the loss.
    pub(crate) fn look<S>(&self, see: impl FnOnce(&Candidate, bool) -> S) -> S {
        let mut state = self.state();
        state.take_in(self.shared.clock);
        let is_watched = !state.watchers.is_empty() || state.present.as_ref().is_some_and(Present::is_loss_unlogged);
        see(&state.candidate, is_watched)
    }

    /// Sends what is due, up to the time `early` in advance for the ttl, without waiting for the answers. If the lock
    /// is lost, announces that instead. Returns the time for which the answers are examined: a node that is silent for
    /// longer is asked again later. Also returns the events, which are logged when they are dropped: not before the
    /// next lock is renewed.
    ///
    /// The holder of a lock that is renewed listens for break messages, because it holds the lock for long. A question
    /// after a new connection is not such a renewal.
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
        // Under no mutex, because this wakes other tasks.
        if is_held_for_long {
            self.shared.listen();
        }
        (wait, news)
    }

    /// Returns the time for which the answers to a renewal matter. A process that breaks the lock waits for them.
    fn answers_matter_for(&self, state: &State) -> Duration {
        let timeout = state.candidate.answers_matter_for(self.node_timeout_of(state));
        if state.candidate.is_revoked() { STOPPING.max(timeout) } else { timeout }
    }

    /// Returns the state after the arrived answers were processed. If votes are missing, the process also starts to
    /// listen. A waiter that yields publishes that, and a process that does not listen looks absent.
    fn heard(&self) -> StateGuard<'_> {
        let mut state = self.state();
        state.take_in(self.shared.clock);
        if state.candidate.lacks_votes() {
            // Under no mutex, because this wakes other tasks.
            drop(state);
            self.shared.listen();
            state = self.state();
            state.take_in(self.shared.clock);
        }
        state
    }

    /// Processes the answers to a renewal. Returns the result of `see` for the lock, and the events, like
    /// [`renew`](Self::renew).
    pub(crate) fn hear<S>(&self, see: impl FnOnce(&Candidate, Instant) -> S) -> (S, Option<Box<News>>) {
        let mut state = self.heard();
        // Read after the answers were processed, because actions that they cause are due now.
        let now = self.now();
        let is_over = state.candidate.is_over(now);
        let lost = if is_over { self.note_loss(&mut state, now) } else { None };
        if is_over {
            state.watchers.call();
        }
        // A node that has just denied the lock is asked for it soon, and the others at once.
        if state.candidate.look(now, now, false) == Look::Due {
            let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
            candidate.renew(now, now, |out| sender.send(out));
        }
        self.send_next(&mut state, now);
        (see(&state.candidate, now), lost)
    }

    /// Handles a new connection to node number `index`, where a holder soon asks.
    pub(crate) fn connected(&self, index: usize) {
        let mut state = self.state();
        // Answers that the old connection owed have failed now, and must not block the next question.
        state.take_in(self.shared.clock);
        if self.note_connection_epoch(index, &mut state) {
            state.candidate.connected(index, self.now());
        }
    }

    /// Returns `true` if the new connection to node number `index` concerns these names. A cluster node has many
    /// connections, and replaces one whenever a member is restarted.
    fn note_connection_epoch(&self, index: usize, state: &mut State) -> bool {
        let parts = self.shared.nodes.get(index).filter(|node| node.node().has_parts());
        parts.is_none_or(|node| state.candidate.note_connection_epoch(index, node.epoch(self.subject.route())))
    }

    /// Records that the clock of node number `index` went ahead by at most `step`.
    pub(crate) fn on_clock_step(&self, index: usize, step: Duration) {
        self.state().on_clock_step(index, step, self.shared.clock);
    }

    /// Registers `waker` for the loss of the lock, or for the release of that `member`'s share. Returns the remaining
    /// time of the lock.
    pub(crate) fn watch(&self, watcher: &mut Option<u32>, member: u32, waker: &Waker) -> Duration {
        self.state().watchers.watch(watcher, member, waker);
        self.validity()
    }

    /// Removes the registration `watcher`.
    pub(crate) fn forget_watcher(&self, watcher: u32) {
        self.state().watchers.forget(watcher);
    }

    /// Returns the error for a lost lock, for the caller that has noticed the loss.
    pub(crate) fn lost(&self) -> LockError {
        let (mut state, now) = (self.state(), self.now());
        let (error, news) = (self.loss_error(&state), self.note_loss(&mut state, now));
        drop(state);
        drop(news);
        error
    }

    /// Returns the error for a lock that was released before.
    pub(crate) fn released(&self) -> LockError {
        self.loss(&self.state(), LossCause::Released)
    }

    /// Returns the error for a call that had the lock from `since` to `until`: a nested call, or the call with the
    /// turn. Without a `cause`, the error contains the cause that the nodes show.
    pub(crate) fn lost_between(&self, since: Option<Instant>, until: Instant, cause: Option<LossCause>) -> LockError {
        let state = self.state();
        let mut error = self.loss_error(&state);
        if let LockError::Lost { held_for, cause: by_the_nodes, .. } = &mut error {
            *held_for = since.map_or(*held_for, |since| state.candidate.held_between(since, until));
            *by_the_nodes = cause.unwrap_or_else(|| by_the_nodes.clone());
        }
        error
    }

    /// Returns the error for a lost lock, from the present knowledge.
    pub(super) fn loss_error(&self, state: &State) -> LockError {
        self.loss(state, self.cause(state, self.now()))
    }

    /// Returns the cause of the loss.
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

    /// Reports a body that continues after the loss of its lock, in the log and in a counter.
    pub(crate) fn outlived(&self) {
        self.shared.outlived.fetch_add(1, Ordering::Relaxed);
        events::outlived(self.shared.told(self.key()));
    }

    pub(super) fn loss(&self, state: &State, cause: LossCause) -> LockError {
        LockError::Lost { key: self.key().clone(), held_for: state.candidate.held_for(self.now()), cause }
    }
}
