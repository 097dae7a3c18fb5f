//! One token's standing at every node, from the first command to the release.
//!
//! Whoever drops an [`Ownership`], at whatever point, has sent the release: that is all of cancel safety.

mod leaving;
mod standing;

pub(crate) use self::leaving::Leaving;
use self::standing::{InFlight, Standing, Vote};
use crate::clock::Instant;
use crate::error::{LockError, NodeError, NodeFailure};
use crate::key::LockKey;
use crate::lease;
use crate::node::{Command, Subject, Verb};
use crate::quorum::Verdict;
use crate::reclaim::Unanswered;
use crate::shared::Core;
use crate::token::OwnerToken;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

pub(crate) struct Ownership {
    core: Arc<Core>,
    subject: Arc<Subject>,
    ttl: Duration,
    begun: Instant,
    standing: Mutex<Standing>,
    /// Held while an extension waits: an answer wakes one task.
    extending: tokio::sync::Mutex<()>,
}

impl Ownership {
    /// Asks every node for the lock with a new token.
    pub(crate) fn claim(core: &Arc<Core>, key: &LockKey, ttl: Duration, now: Instant) -> Self {
        let ownership = Self {
            core: Arc::clone(core),
            subject: Arc::new(Subject { key: key.clone(), token: OwnerToken::new(core.id, core.token_clock.next()) }),
            ttl,
            begun: now,
            standing: Mutex::new(Standing::new(core.nodes.len())),
            extending: tokio::sync::Mutex::const_new(()),
        };
        ownership.ask(Verb::SetNx { ttl }, now);
        ownership
    }

    pub(crate) fn key(&self) -> &LockKey {
        &self.subject.key
    }

    pub(crate) fn token(&self) -> &OwnerToken {
        &self.subject.token
    }

    pub(crate) const fn ttl(&self) -> Duration {
        self.ttl
    }

    pub(crate) fn node_timeout(&self) -> Duration {
        self.core.policy.node_timeout(self.ttl)
    }

    /// How much longer the lock is provably ours.
    pub(crate) fn validity(&self) -> Duration {
        let mut standing = self.standing();
        let validity = |standing: &Standing| {
            // The time is read after the answers: it may only err towards a shorter validity.
            standing.valid_until().map_or(Duration::ZERO, |end| end.since(self.core.clock.now()))
        };
        match validity(&standing) {
            // Whoever waits for an extension takes in the answers.
            Duration::ZERO if self.extending.try_lock().is_ok() => {
                standing.settle();
                validity(&standing)
            }
            // Answers that came since can only add to it, and matter when it is used up.
            proven => proven,
        }
    }

    /// Sends `verb` to every node at once. Returns the lease end that a positive answer proves, counted from `now`,
    /// which must be before the first send.
    fn ask(&self, verb: Verb, now: Instant) -> Instant {
        let mut standing = self.standing();
        standing.settle();
        let end = now.after(lease::provable(self.ttl, self.core.policy.drift_factor));
        for (node, reclaim) in standing.nodes.iter_mut().zip(&self.core.nodes) {
            let answer = reclaim.ask(Command { verb, subject: Arc::clone(&self.subject) }, now);
            node.awaits(InFlight { end, answer });
        }
        end
    }

    /// Waits for the votes, no longer than `patience`, and not for a node that cannot change the outcome.
    pub(crate) async fn decided(&mut self, patience: Duration) -> Verdict {
        let votes = poll_fn(|cx| {
            let standing = self.standing.get_mut().unwrap_or_else(PoisonError::into_inner);
            standing.poll(cx);
            match standing.tally().verdict() {
                Verdict::Open => Poll::Pending,
                verdict => Poll::Ready(verdict),
            }
        });
        match tokio::time::timeout(patience, votes).await {
            Ok(Verdict::Reached) if self.validity() < lease::least_useful(self.ttl) => self.standing().too_late(),
            Ok(verdict) => verdict,
            Err(_) => self.standing().give_up(&NodeError::TimedOut(patience)),
        }
    }

    /// Starts the lease anew at every node, counted from now.
    ///
    /// # Errors
    /// [`LockError::Lost`] when too many nodes say that the lock is not ours, [`LockError::NoQuorum`] when too few
    /// answer in time. Neither takes away what was proven before.
    pub(crate) async fn extend(&self) -> Result<(), LockError> {
        let _turn = self.extending.lock().await;
        let wanted = self.ask(Verb::Extend { ttl: self.ttl }, self.core.clock.now());
        let answers = poll_fn(|cx| {
            let mut standing = self.standing();
            standing.poll(cx);
            let extended = standing.valid_until().is_some_and(|end| end >= wanted);
            if extended {
                return Poll::Ready(Ok(()));
            }
            match standing.tally().verdict() {
                Verdict::Contended => {
                    let held_for = self.held_for(&standing);
                    Poll::Ready(Err(LockError::Lost { key: self.key().clone(), held_for }))
                }
                _ if standing.nodes.iter().all(|node| node.in_flight.is_none()) => {
                    Poll::Ready(Err(self.no_quorum(&standing, None)))
                }
                _ => Poll::Pending,
            }
        });
        let patience = self.node_timeout();
        match tokio::time::timeout(patience, answers).await {
            Ok(answer) => answer,
            Err(_) => Err(self.no_quorum(&self.standing(), Some(&NodeError::TimedOut(patience)))),
        }
    }

    pub(crate) fn lost(&self) -> LockError {
        LockError::Lost { key: self.key().clone(), held_for: self.held_for(&self.standing()) }
    }

    /// The error for a round that too few nodes answered.
    pub(crate) fn failure(&self) -> LockError {
        self.no_quorum(&self.standing(), None)
    }

    fn no_quorum(&self, standing: &Standing, silence: Option<&NodeError>) -> LockError {
        let failures = self.core.nodes.iter().zip(&standing.nodes).filter_map(|(reclaim, node)| {
            Some(NodeFailure { node: reclaim.label().into(), error: node.reason(silence)? })
        });
        self.core.no_quorum(Some(self.key()), failures.collect())
    }

    /// Sends the release to every node that may hold the lock for this token, and hands `each` what is unanswered.
    /// Later calls send nothing.
    fn release(&self, mut each: impl FnMut(usize, Unanswered)) {
        let mut standing = self.standing();
        if std::mem::replace(&mut standing.released, true) {
            return;
        }
        standing.settle();
        let matters_until = self.core.clock.now().after(self.ttl);
        for (index, (node, reclaim)) in standing.nodes.iter_mut().zip(&self.core.nodes).enumerate() {
            if node.may_hold() {
                let expected = node.vote == Vote::Granted;
                each(index, reclaim.release(Arc::clone(&self.subject), matters_until, expected));
            }
            // Its answer says nothing any more: the release follows on the same connection.
            node.in_flight = None;
        }
    }

    /// Gives the lock back; the answers can be waited for.
    pub(crate) fn leave(&self) -> Leaving {
        let held_for = self.held_for(&self.standing());
        let mut leaving = Leaving::new(&self.core, &self.subject, held_for);
        leaving.not_ours(self.standing().not_ours());
        self.release(|node, sent| leaving.add(node, sent));
        leaving
    }

    /// For how long the lock was provably ours.
    fn held_for(&self, standing: &Standing) -> Duration {
        let now = self.core.clock.now();
        standing.proven_until.map_or(Duration::ZERO, |end| end.min(now).since(self.begun))
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        // A panic under this mutex leaves no half-made change that matters: every field is valid by itself.
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        self.release(|node, sent| self.core.see_through(node, sent));
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
