//! One acquisition: a [`Candidate`] with nodes, a clock, and tasks that wait for it.
//!
//! What is decided about a token is decided in `protocol/candidate`. Here are the parts that it has none of: commands are
//! sent, answers awaited, timers set, and those woken who wait or rely on the lock. An acquisition knows how the line is called that
//! it stands in, and nothing else of it.

mod confirmed_release;
mod entrance;
mod extending;
mod fencing;
mod holding;
mod idling;
mod loss_watchers;
mod lowering;
mod members;
mod noting;
mod permits;
mod present;
mod releasing;
mod returning;
mod sharing;
mod state;
mod state_guard;
#[cfg(test)]
mod tests;
mod trying;
mod turns;
mod waiting;

pub(crate) use self::confirmed_release::ConfirmedRelease;
pub(crate) use self::entrance::Entrance;
pub(crate) use self::fencing::Unnumbered;
pub(crate) use self::loss_watchers::{Calls, NO_MEMBER};
pub(crate) use self::noting::Holding;
pub(crate) use self::present::News;
pub(crate) use self::trying::{Occupied, TakenUp};

use self::state::{Sleeper, State};
use self::state_guard::StateGuard;
use crate::client::node_handle::NodeHandle;
use crate::client::shared::Shared;
use crate::error::{LockError, NodeError, NodeFailure};
use crate::lock::parts::Parts;
use crate::lock::reserved::line_of;
use crate::lock::{LockKey, Mode, OwnerToken};
use crate::protocol::candidate::{Candidate, LeaseTerms, Phase};
use crate::protocol::command::{Notice, ProvenClaim, Subject};
use crate::protocol::rules::Rule;
use crate::protocol::timing::LONGEST_SILENCE;
use crate::time::clock::Instant;
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A token, and what the nodes have said about it.
///
/// The task that waits with it, the holder of the lock and the wake-ups from the nodes share it. Dropped, it has released
/// the token at whatever point that was.
pub(crate) struct Acquisition {
    shared: Arc<Shared>,
    subject: Arc<Subject>,
    state: Mutex<State>,
    /// The number of the call that has the token now.
    turn: AtomicU32,
    /// It stands in a line of its own, although its key has one.
    stands_beside: bool,
}

impl Acquisition {
    pub(crate) fn new(shared: &Arc<Shared>, subject: Subject, ttl: Duration, now: Instant) -> Self {
        let epochs = shared.nodes.iter().map(|node| node.epoch(subject.route()));
        let candidate = Candidate::new(epochs, shared.terms(ttl), now);
        let candidate = if subject.mode.is_permit() { candidate.for_permit() } else { candidate };
        let candidate = if subject.has_several() { candidate.for_several() } else { candidate };
        Self {
            shared: Arc::clone(shared),
            subject: Arc::new(subject),
            state: Mutex::new(State::new(candidate, shared.nodes.len())),
            turn: AtomicU32::new(0),
            stands_beside: false,
        }
    }

    /// A new token of this process for `key`, which wants it alone.
    pub(crate) fn of_key(shared: &Arc<Shared>, key: &LockKey, ttl: Duration, now: Instant) -> Self {
        Self::new(shared, Subject::new(key.clone(), shared.new_token()), ttl, now)
    }

    /// A new token of this process for all of `parts` in this `mode`, which stands in a line of its own.
    pub(crate) fn of_parts(shared: &Arc<Shared>, (parts, mode): (&Parts, Mode), ttl: Duration, now: Instant) -> Self {
        Self::new(shared, Subject::of(parts, shared.new_token()).of_mode(mode), ttl, now)
    }

    /// The same with another token.
    fn with_token(&self, token: OwnerToken, ttl: Duration) -> Self {
        let mut other = Self::new(&self.shared, self.subject.under(token), ttl, self.now());
        other.stands_beside = self.stands_beside;
        other
    }

    /// The next token of this process for the same key, at the end of the queues.
    pub(crate) fn successor(&self, ttl: Duration) -> Self {
        self.with_token(self.shared.new_token(), ttl)
    }

    /// Another token with the same place in the queues.
    pub(crate) fn again(&self) -> Self {
        let is_dead = self.shared.rules.apply(Rule::ReleasedTokensAreDead);
        let again = |token: &OwnerToken| if token.asks() { token.asking() } else { token.again() };
        let token = if is_dead { again(self.token()) } else { *self.token() };
        self.with_token(token, self.ttl())
    }

    /// The next token of this process for the same key, for a call that only wants to know whether a body runs.
    pub(crate) fn asking(&self) -> Self {
        let token = self.shared.new_token().asking();
        self.with_token(token, self.ttl())
    }

    /// Whether the lock is for the present call alone, or shared with others.
    pub(crate) fn mode(&self) -> Mode {
        if self.lock().candidate.is_lowered() { Mode::Shared } else { self.subject.mode }
    }

    /// Whether it is one of the permits of its key that is wanted.
    pub(crate) fn is_permit(&self) -> bool {
        self.subject.mode.is_permit()
    }

    /// What the line is called in which the token stands: as its key, or in one of its own, for a lock that others share, several names,
    /// and whoever comes back to a turnstile.
    pub(crate) fn line(&self) -> Cow<'_, str> {
        let is_of_key = self.subject.is_plain() && !self.stands_beside;
        if is_of_key { self.key().name().into() } else { line_of(self.token()).into() }
    }

    pub(crate) fn key(&self) -> &LockKey {
        &self.subject.key
    }

    /// Each of the keys that were asked for.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &LockKey> {
        let several = self.subject.parts.as_deref();
        let single = several.is_none().then(|| self.key());
        single.into_iter().chain(several.into_iter().flat_map(Parts::keys))
    }

    /// Whether one of the names that were asked for is called `name` in Redis.
    pub(crate) fn concerns(&self, name: &str) -> bool {
        self.subject.concerns(name)
    }

    /// The names at the nodes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.subject.wanted().map(|(key, _)| key.name())
    }

    /// What the lock is, as far as it is still alone what it was.
    pub(crate) fn parts(&self) -> Parts {
        let parts = self.subject.parts.as_deref().cloned();
        match parts {
            Some(parts) if self.mode().is_shared() => parts.lowered(),
            Some(parts) => parts,
            None => Parts::single(self.key().clone(), self.mode()),
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn token(&self) -> &OwnerToken {
        &self.subject.token
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.lock().candidate.terms().ttl
    }

    /// How long a node is waited for: no less than by a call that begins now, for which those that are left may be further away.
    pub(crate) fn node_timeout(&self) -> Duration {
        self.node_timeout_of(&self.lock())
    }

    /// How long an extension or a release waits for nodes that do not answer: as long as a call that acquires a lock.
    pub(crate) fn patience(&self) -> Duration {
        self.node_timeout().max(LONGEST_SILENCE)
    }

    /// The same, for whoever has the state.
    fn node_timeout_of(&self, state: &State) -> Duration {
        let LeaseTerms { ttl, node_timeout, .. } = *state.candidate.terms();
        node_timeout.max(self.shared.node_timeout(ttl))
    }

    fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// Node number `index` has something to say about the token. `false` when the token was released, and nobody here has
    /// any use for it.
    pub(crate) fn notice(&self, index: usize, notice: Notice) -> bool {
        let proven = self.proven(index, notice);
        let now = self.now();
        let mut state = self.state();
        if state.candidate.phase() == Phase::Ended {
            return false;
        }
        match notice {
            Notice::Free => state.candidate.may_be_free(index, now),
            // One name is none of those that were asked for together: it is had with the others, or not at all.
            Notice::Granted | Notice::Claimed(_) | Notice::Proven(_) if self.subject.has_several() => {
                state.candidate.may_be_free(index, now);
            }
            Notice::Granted | Notice::Claimed(_) | Notice::Proven(_) => state.candidate.claimed(index, proven, now),
            Notice::Contended { by } if by.asks() => {
                state.candidate.asked(index, by < *self.token());
                self.asked(&mut state, index, by);
            }
            Notice::Contended { by } => state.candidate.contended(index, by < *self.token(), now),
            // A call that waits does so for whoever has a body, and not for what anybody says who may publish.
            Notice::Busy if self.token().asks() => state.candidate.busy(),
            // And no call has the token that a broken lock stands under.
            Notice::Busy | Notice::Stopped => {}
            Notice::Freed => state.rare().is_freed = true,
            Notice::Wanted { by } => state.candidate.wanted(index, by, now),
            Notice::Revoked { by } => {
                state.revoked(index, by, now);
                // Also when the token has no vote that could be broken, as far as it knows: a claim may be on its way.
                self.shared.revocations.revoked(*self.token(), by);
                state.rare().says_that_it_ends = true;
            }
        }
        // At once: the task that waits has a way to go until it runs.
        let has_sent = self.send_next(&mut state, now);
        // Most of what comes before the last vote changes nothing for the task: it would only go to sleep again.
        let sleeper = if has_sent || notice == Notice::Freed { state.sleeper.take() } else { state.due_sleeper(now) };
        drop(state);
        sleeper.into_iter().for_each(Sleeper::wake);
        true
    }

    /// The claim that node number `index` proves by a notice. A node that abstains proves nothing.
    fn proven(&self, index: usize, notice: Notice) -> Option<ProvenClaim> {
        let Notice::Proven(claim) = notice else { return None };
        let counts_always = !self.shared.rules.apply(Rule::AbstentionVoidsProof);
        let counts = |node: &&NodeHandle| counts_always || node.node().abstains_for().is_none();
        self.shared.nodes.get(index).filter(counts).map(|_| claim)
    }

    /// Sends what the nodes should be asked next. Whether anything was.
    fn send_next(&self, state: &mut State, now: Instant) -> bool {
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        candidate.leave_tainted(now, |index, last| sender.release(index, last));
        candidate.next_commands(now, |index| self.is_ready(index), |out| sender.send(out))
    }

    /// Whether node number `index` can be asked for a place in the queue.
    fn is_ready(&self, index: usize) -> bool {
        self.shared.nodes.get(index).is_some_and(|node| node.is_ready_to_queue(self.subject.route()))
    }

    /// Whether enough nodes answer.
    pub(crate) fn is_heard(&self) -> bool {
        self.state().candidate.is_heard(self.now())
    }

    /// Whether so many nodes refuse that only somebody who mends it can help.
    pub(crate) fn is_refused(&self) -> bool {
        self.state().candidate.is_refused()
    }

    /// Returns `true` if nothing but answers that have not come yet keeps the token from a quorum.
    pub(crate) fn lacks_answers(&self) -> bool {
        self.state().candidate.lacks_answers()
    }

    /// The error when too few nodes answered.
    pub(crate) fn failure(&self) -> LockError {
        self.no_quorum(&self.state())
    }

    /// The error when too few nodes count, by what is known of them now.
    fn no_quorum(&self, state: &State) -> LockError {
        self.shared.no_quorum(Some(self.key()), self.failures(state.candidate.reasons(self.now())))
    }

    /// The causes for an error: for each node why it does not count, if it does not.
    fn failures(&self, reasons: impl Iterator<Item = Option<NodeError>>) -> Box<[NodeFailure]> {
        let failures = self.shared.nodes.iter().zip(reasons);
        failures.filter_map(|(node, error)| Some(NodeFailure { node: node.label().into(), error: error? })).collect()
    }

    /// The state. Those who rely on the lock are woken when it is free again, if they are to be.
    fn state(&self) -> StateGuard<'_> {
        StateGuard::new(self.lock())
    }

    /// The state, for whoever wakes others later because he has another mutex as well.
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under this mutex leaves no half-made change that matters: every field is valid by itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever lets go of a token, at whatever point, has released it.
impl Drop for Acquisition {
    fn drop(&mut self) {
        self.release();
    }
}

impl fmt::Debug for Acquisition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquisition")
            .field("key", self.key())
            .field("token", self.token())
            .field("candidate", &self.state().candidate)
            .finish_non_exhaustive()
    }
}
