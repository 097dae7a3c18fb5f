//! One acquisition: a [`Candidate`] with nodes, a clock, and tasks that wait for it.
//!
//! `protocol/candidate` makes all decisions about a token. This module does the rest: it sends commands, awaits
//! answers, sets timers, and wakes the tasks that wait for the lock or rely on it. An acquisition knows the name of its
//! local queue, and nothing else of that queue.

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
pub(crate) use self::trying::{Occupied, ResumeState};

use self::state::{Sleeper, State};
use self::state_guard::StateGuard;
use crate::client::node_handle::NodeHandle;
use crate::client::shared::Shared;
use crate::error::{LockError, NodeError, NodeFailure};
use crate::lock::part::Part;
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

/// Token, and the reports of the nodes about it.
///
/// The task that waits with it, the holder of the lock and the wake-ups from the nodes share it. On drop, it releases
/// the token in whatever state it is.
pub(crate) struct Acquisition {
    shared: Arc<Shared>,
    subject: Arc<Subject>,
    state: Mutex<State>,
    /// Number of the present turn.
    turn: AtomicU32,
    /// Set if it has its own local queue, apart from the queue of its key.
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

    /// Creates a new token of this process that wants `key` exclusively.
    pub(crate) fn of_key(shared: &Arc<Shared>, key: &LockKey, ttl: Duration, now: Instant) -> Self {
        Self::new(shared, Subject::new(key.clone(), shared.new_token()), ttl, now)
    }

    /// Creates a new token of this process for all of `parts` in this `mode`, with its own local queue.
    pub(crate) fn of_parts(shared: &Arc<Shared>, (parts, mode): (&Parts, Mode), ttl: Duration, now: Instant) -> Self {
        Self::new(shared, Subject::of(parts, shared.new_token()).of_mode(mode), ttl, now)
    }

    /// Creates an acquisition of the same names with another token.
    fn with_token(&self, token: OwnerToken, ttl: Duration) -> Self {
        let mut other = Self::new(&self.shared, self.subject.under(token), ttl, self.now());
        other.stands_beside = self.stands_beside;
        other
    }

    /// Creates the next token of this process for the same key, at the end of the queues.
    pub(crate) fn successor(&self, ttl: Duration) -> Self {
        self.with_token(self.shared.new_token(), ttl)
    }

    /// Creates another token with the same place in the queues.
    pub(crate) fn again(&self) -> Self {
        let is_dead = self.shared.rules.apply(Rule::ReleasedTokensAreDead);
        let again = |token: &OwnerToken| if token.asks() { token.asking() } else { token.again() };
        let token = if is_dead { again(self.token()) } else { *self.token() };
        self.with_token(token, self.ttl())
    }

    /// Creates the next token of this process for the same key, for a call that only asks if a body runs.
    pub(crate) fn asking(&self) -> Self {
        let token = self.shared.new_token().asking();
        self.with_token(token, self.ttl())
    }

    /// Returns the present mode of the lock: exclusive or shared.
    pub(crate) fn mode(&self) -> Mode {
        if self.lock().candidate.is_lowered() { Mode::Shared } else { self.subject.mode }
    }

    /// Returns `true` if it wants a permit of its key.
    pub(crate) fn is_permit(&self) -> bool {
        self.subject.mode.is_permit()
    }

    /// Returns the name of the token's local queue: the name of its key, or a separate name. It has a separate queue if
    /// the lock is shared, has several names, or is an admission lock to which a permit returns.
    pub(crate) fn line(&self) -> Cow<'_, str> {
        let is_of_key = self.subject.is_plain() && !self.stands_beside;
        if is_of_key { self.key().name().into() } else { line_of(self.token()).into() }
    }

    pub(crate) fn key(&self) -> &LockKey {
        &self.subject.key
    }

    /// Returns each of the requested keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &LockKey> {
        let several = self.subject.parts.as_deref();
        let single = several.is_none().then(|| self.key());
        single.into_iter().chain(several.into_iter().flat_map(Parts::keys))
    }

    /// Returns `true` if one of the requested names is called `name` in Redis.
    pub(crate) fn concerns(&self, name: &str) -> bool {
        self.subject.concerns(name)
    }

    /// Returns `true` if this one and `other` cannot be held at the same time, in their present classes.
    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        if self.token() == other.token() || !self.names().any(|name| other.concerns(name)) {
            return false;
        }
        let (ours, theirs) = (self.parts(), other.parts());
        let conflicts =
            |our: &Part, their: &Part| our.key.name() == their.key.name() && our.class.conflicts_with(their.class);
        ours.iter().any(|our| theirs.iter().any(|their| conflicts(our, their)))
    }

    /// Returns the names at the nodes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.subject.wanted().map(|(key, _)| key.name())
    }

    /// Returns the parts of the lock in their present classes.
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

    /// Returns the time to wait for a node: at least that of a call that begins now, because the remaining nodes may be
    /// further away.
    pub(crate) fn node_timeout(&self) -> Duration {
        self.node_timeout_of(&self.lock())
    }

    /// Returns the time that an extension or a release waits for nodes that do not answer: that of an acquisition.
    pub(crate) fn patience(&self) -> Duration {
        self.node_timeout().max(LONGEST_SILENCE)
    }

    /// Returns the time to wait for a node, for a caller that has locked the state.
    fn node_timeout_of(&self, state: &State) -> Duration {
        let LeaseTerms { ttl, node_timeout, .. } = *state.candidate.terms();
        node_timeout.max(self.shared.node_timeout(ttl))
    }

    fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// Handles a notification about the token from node number `index`. Returns `false` if the token was released, and
    /// no call needs it.
    pub(crate) fn notice(&self, index: usize, notice: Notice) -> bool {
        let proven = self.proven(index, notice);
        let now = self.now();
        let mut state = self.state();
        if state.candidate.phase() == Phase::Ended {
            return false;
        }
        match notice {
            Notice::Free => state.candidate.on_possibly_free(index, now),
            // A single name of a request for several names is useless: it is acquired with the others, or not at all.
            Notice::Granted | Notice::Claimed(_) | Notice::Proven(_) if self.subject.has_several() => {
                state.candidate.on_possibly_free(index, now);
            }
            Notice::Granted | Notice::Claimed(_) | Notice::Proven(_) => state.candidate.claimed(index, proven, now),
            Notice::Contended { by } if by.asks() => {
                state.candidate.asked(index, by < *self.token());
                self.asked(&mut state, index, by);
            }
            Notice::Contended { by } => state.candidate.contended(index, by < *self.token(), now),
            // A waiting call waits for holders with a body, and does not rely on messages that anyone may publish.
            Notice::Busy if self.token().asks() => state.candidate.busy(),
            // A token that has the place of a broken lock has no call.
            Notice::Busy | Notice::Stopped => {}
            Notice::Freed => state.rare().is_freed = true,
            Notice::Wanted { by } => state.candidate.wanted(index, by, now),
            Notice::Revoked { by } => {
                state.revoked(index, by, now);
                // Even if the token has no vote that could be broken, as far as it knows: a claim may be on its way.
                self.shared.revocations.revoked(*self.token(), by);
                state.rare().says_that_it_ends = true;
            }
        }
        // At once, because the waiting task runs only later.
        let has_sent = self.send_next(&mut state, now);
        // Most notifications before the last vote change nothing for the task: it would only sleep again.
        let sleeper = if has_sent || notice == Notice::Freed { state.sleeper.take() } else { state.due_sleeper(now) };
        drop(state);
        sleeper.into_iter().for_each(Sleeper::wake);
        true
    }

    /// Returns the claim that node number `index` proves by a notification. A node that abstains proves nothing.
    fn proven(&self, index: usize, notice: Notice) -> Option<ProvenClaim> {
        let Notice::Proven(claim) = notice else { return None };
        let counts_always = !self.shared.rules.apply(Rule::AbstentionVoidsProof);
        let counts = |node: &&NodeHandle| counts_always || node.node().abstains_for().is_none();
        self.shared.nodes.get(index).filter(counts).map(|_| claim)
    }

    /// Sends the next commands to the nodes. Returns `true` if there were any.
    fn send_next(&self, state: &mut State, now: Instant) -> bool {
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        candidate.leave_tainted(now, |index, last| sender.release(index, last));
        candidate.next_commands(now, |index| self.is_ready(index), |out| sender.send(out))
    }

    /// Returns `true` if node number `index` can be asked for a place in the queue.
    fn is_ready(&self, index: usize) -> bool {
        self.shared.nodes.get(index).is_some_and(|node| node.is_ready_to_queue(self.subject.route()))
    }

    /// Returns `true` if enough nodes answer.
    pub(crate) fn is_heard(&self) -> bool {
        self.state().candidate.is_heard(self.now())
    }

    /// Returns `true` if too many nodes refuse permanently; only an operator can help.
    pub(crate) fn is_refused(&self) -> bool {
        self.state().candidate.is_refused()
    }

    /// Returns `true` if only outstanding answers keep the token from a quorum.
    pub(crate) fn lacks_answers(&self) -> bool {
        self.state().candidate.lacks_answers()
    }

    /// Returns the error for the case that too few nodes answered.
    pub(crate) fn failure(&self) -> LockError {
        self.no_quorum(&self.state())
    }

    /// Returns the error for the case that too few nodes count, from the present knowledge.
    fn no_quorum(&self, state: &State) -> LockError {
        self.shared.no_quorum(Some(self.key()), self.failures(state.candidate.reasons(self.now())))
    }

    /// Returns the causes for an error: for each node the reason that it does not count, if it does not.
    fn failures(&self, reasons: impl Iterator<Item = Option<NodeError>>) -> Box<[NodeFailure]> {
        let failures = self.shared.nodes.iter().zip(reasons);
        failures.filter_map(|(node, error)| Some(NodeFailure { node: node.label().into(), error: error? })).collect()
    }

    /// Locks the state. The called watchers of the lock are woken when it is unlocked.
    fn state(&self) -> StateGuard<'_> {
        StateGuard::new(self.lock())
    }

    /// Locks the state for a caller that wakes watchers later, because it has locked another mutex as well.
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under this mutex leaves no harmful half-made change: every field is valid by itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A dropped token is released, in whatever state it is.
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
