//! One token's life, from the first command to the release.

mod fencing;
mod holding;
mod leaving;
pub(crate) mod loss_watchers;
mod send;
mod state_guard;
#[cfg(test)]
mod tests;
mod waiting;

pub(crate) use self::fencing::Unnumbered;
pub(crate) use self::holding::Look;
pub(crate) use self::leaving::Leaving;
use self::state_guard::Access;
pub(crate) use self::waiting::Waited;
use crate::client::local_queue::LocalQueue;
use crate::client::shared::Core;
use crate::error::{LockError, NodeError, NodeFailure};
use crate::lock::LockKey;
use crate::lock::OwnerToken;
use crate::protocol::candidate::voter::NodeStanding;
use crate::protocol::candidate::{Phase, Standing, Terms};
use crate::protocol::command::{Fence, Notice, Subject, Verb};
use crate::protocol::quorum::Verdict;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

/// A token, and what the nodes have said about it.
///
/// The task that waits with it, the holder of the lock and the wake-ups from the nodes share it.
pub(crate) struct Ownership {
    core: Arc<Core>,
    subject: Arc<Subject>,
    terms: Terms,
    standing: Mutex<Standing>,
    /// Held while somebody waits for the answers to an extension: an answer wakes one task.
    extending: tokio::sync::Mutex<()>,
}

impl Ownership {
    pub(crate) fn new(core: &Arc<Core>, subject: Subject, ttl: Duration, now: Instant) -> Self {
        let policy = &core.policy;
        let node_timeout = policy.node_timeout(ttl);
        let terms =
            Terms { ttl, drift_factor: policy.drift_factor, node_timeout, quorum: core.quorum, rules: core.rules };
        let epochs = core.nodes.iter().map(|node| node.epoch(&subject.key));
        let standing = Standing::new(epochs, terms, now);
        Self {
            core: Arc::clone(core),
            subject: Arc::new(subject),
            terms,
            standing: Mutex::new(standing),
            extending: tokio::sync::Mutex::const_new(()),
        }
    }

    pub(crate) fn key(&self) -> &LockKey {
        &self.subject.key
    }

    pub(crate) fn token(&self) -> &OwnerToken {
        &self.subject.token
    }

    pub(crate) fn local_queue(&self) -> &LocalQueue {
        &self.core.local
    }

    pub(crate) const fn ttl(&self) -> Duration {
        self.terms.ttl
    }

    pub(crate) const fn node_timeout(&self) -> Duration {
        self.terms.node_timeout
    }

    /// A token that no node has ever seen.
    pub(crate) fn unused_token(&self) -> OwnerToken {
        self.core.new_token()
    }

    /// The next token of this process for the same key.
    pub(crate) fn successor(&self, ttl: Duration) -> Self {
        self.of_same_key(self.core.new_token(), ttl)
    }

    /// Another token with the same place in the queues.
    pub(crate) fn again(&self) -> Self {
        let token =
            if self.core.rules.apply(Rule::ReleasedTokensAreDead) { self.token().again() } else { *self.token() };
        self.of_same_key(token, self.ttl())
    }

    fn of_same_key(&self, token: OwnerToken, ttl: Duration) -> Self {
        Self::new(&self.core, Subject::new(self.key().clone(), token), ttl, self.core.clock.now())
    }

    /// Whether the next call in this process, which wants the lock for `ttl`, may go on with the token.
    pub(crate) fn pass(&self, ttl: Duration, is_fenced: bool) -> bool {
        // Another ttl would be a promise to others that they did not ask for.
        let (mut standing, now) = (self.standing(), self.core.clock.now());
        if let Some(rest) = standing.tenure.rest(now) {
            // Before anybody else is announced here: what others say of the token must not release it.
            self.core.parked.park(*self.token(), now.after(rest), now);
            return false;
        }
        let passes = ttl == self.ttl()
            && standing.numbers.may_pass(is_fenced)
            && standing.pass(now, self.core.policy.local_budget);
        if passes {
            // Whoever had it has it no more.
            standing.watchers.call();
        }
        passes
    }

    /// Whether the lock is held already, by whoever passed it on.
    pub(crate) fn is_held(&self) -> bool {
        self.standing().phase == Phase::Holding
    }

    /// Whether another call of this process has gone on without it.
    pub(crate) fn is_forfeited(&self) -> bool {
        self.standing().phase == Phase::Forfeited
    }

    /// Whether the lock was held and its lease has run out.
    pub(crate) fn is_over(&self) -> bool {
        self.lease_left().is_some_and(|left| left.is_zero())
    }

    /// How much longer the lock is held, if it is.
    pub(crate) fn lease_left(&self) -> Option<Duration> {
        self.is_held().then(|| self.validity())
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.standing().phase == Phase::Waiting
    }

    /// Whether enough nodes answer.
    pub(crate) fn is_heard(&self) -> bool {
        self.standing().is_heard(self.core.clock.now())
    }

    /// Whether what is left of the lease is worth having.
    pub(crate) fn is_useful(&self) -> bool {
        self.standing().is_won(self.core.clock.now())
    }

    /// Whether enough of the lease is left for whom it was passed on to.
    pub(crate) fn is_passable(&self) -> bool {
        self.standing().is_passable(self.core.clock.now())
    }

    /// How much longer the lock is provably ours.
    pub(crate) fn validity(&self) -> Duration {
        let mut standing = self.standing();
        let validity = |standing: &Standing| {
            // The time is read after the answers: it may only err towards a shorter validity.
            standing.held_until().map_or(Duration::ZERO, |end| end.since(self.core.clock.now()))
        };
        match validity(&standing) {
            Duration::ZERO => {
                standing.settle(self.core.clock);
                validity(&standing)
            }
            // Answers that came since can only add to it, and matter when it is used up.
            proven => proven,
        }
    }

    /// Asks every node for the lock at once, and waits for the votes, no longer than `patience` and not for a node that
    /// cannot change the outcome.
    pub(crate) async fn claimed(&self, now: Instant, patience: Duration) -> Verdict {
        let fence = self.standing().numbers.fence();
        self.ask_all(Verb::SetNx { ttl: self.ttl() }, fence, now);
        let votes = poll_fn(|cx| {
            let mut standing = self.standing();
            standing.poll(cx, self.core.clock);
            match standing.verdict() {
                Verdict::Open => Poll::Pending,
                verdict => Poll::Ready(verdict),
            }
        });
        let verdict = tokio::time::timeout(patience, votes).await;
        let (mut standing, now) = (self.standing(), self.core.clock.now());
        match verdict {
            Ok(Verdict::Reached) if !standing.is_won(now) => standing.too_late(),
            Ok(Verdict::Reached) => {
                standing.hold(now);
                Verdict::Reached
            }
            Ok(verdict) => verdict,
            Err(_) => standing.give_up(&NodeError::TimedOut(patience)),
        }
    }

    /// Starts the lease anew at every node, counted from now.
    ///
    /// # Errors
    /// [`LockError::Lost`] when too many nodes say that the lock is not ours, [`LockError::NoQuorum`] when too few
    /// answer in time. Neither takes away what was proven before.
    pub(crate) async fn extend(&self) -> Result<(), LockError> {
        // Without a number: that of the token stays what it is.
        self.extend_all(None).await
    }

    async fn extend_all(&self, fence: Option<Fence>) -> Result<(), LockError> {
        let _turn = self.extending.lock().await;
        let now = self.core.clock.now();
        let wanted = self.terms.provable(now);
        {
            let mut standing = self.standing();
            if standing.has_ended(now) {
                return Err(self.lost_by(&standing));
            }
            let verb = standing.extension();
            self.ask_all_of(&mut standing, verb, fence, now);
        }
        let answers = poll_fn(|cx| {
            let mut standing = self.standing();
            if standing.has_ended(now) {
                return Poll::Ready(Err(self.lost_by(&standing)));
            }
            standing.poll(cx, self.core.clock);
            if standing.valid_until().is_some_and(|end| end >= wanted) {
                return Poll::Ready(Ok(()));
            }
            match standing.verdict() {
                Verdict::Contended => Poll::Ready(Err(self.lost_by(&standing))),
                _ if !standing.nodes.iter().any(NodeStanding::is_awaited) => {
                    Poll::Ready(Err(self.no_quorum(&standing)))
                }
                _ => Poll::Pending,
            }
        });
        let patience = self.node_timeout();
        if let Ok(answer) = tokio::time::timeout(patience, answers).await {
            return answer;
        }
        // What the watchdog has asked in between may have been answered: that wakes nobody here.
        let mut standing = self.standing();
        standing.settle(self.core.clock);
        let is_extended = standing.valid_until().is_some_and(|end| end >= wanted);
        if is_extended { Ok(()) } else { Err(self.no_quorum(&standing)) }
    }

    /// Node number `index` has something to say about the token.
    pub(crate) fn notice(&self, index: usize, notice: Notice) {
        let now = self.core.clock.now();
        let mut standing = self.standing();
        match notice {
            Notice::Granted => standing.claimed(index, now),
            Notice::Contended { by } => standing.contended(index, by < *self.token(), now),
        }
        // At once: the task that waits has a way to go until it runs.
        self.ask_what_is_wanted(&mut standing, now);
        let waker = standing.waker.take();
        drop(standing);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The error when too few nodes answered.
    pub(crate) fn failure(&self) -> LockError {
        self.no_quorum(&self.standing())
    }

    fn no_quorum(&self, standing: &Standing) -> LockError {
        self.core.no_quorum(Some(self.key()), self.failures(standing))
    }

    /// Why the nodes that do not count do not.
    fn failures(&self, standing: &Standing) -> Box<[NodeFailure]> {
        let now = self.core.clock.now();
        let failures = self.core.nodes.iter().zip(&standing.nodes).filter_map(|(reclaim, node)| {
            Some(NodeFailure { node: reclaim.label().into(), error: node.reason(now, self.node_timeout())? })
        });
        failures.collect()
    }

    fn standing(&self) -> Access<'_> {
        // A panic under this mutex leaves no half-made change that matters: every field is valid by itself.
        Access::new(self.standing.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whoever lets go of a token, at whatever point, has given it back.
impl Drop for Ownership {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl fmt::Debug for Ownership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ownership")
            .field("key", self.key())
            .field("token", self.token())
            .field("nodes", &self.standing().nodes)
            .finish_non_exhaustive()
    }
}
