//! Giving a lock back at every node that may hold it.

use super::Ownership;
use crate::client::release::{Parting, Unanswered};
use crate::client::shared::Core;
use crate::error::{LockError, NodeError, NodeFailure};
use crate::node::Pending;
use crate::protocol::candidate::voter::Vote;
use crate::protocol::candidate::{Phase, Standing};
use crate::protocol::command::{Answer, Command, Reply, Subject, Verb};
use crate::protocol::lease;
use crate::protocol::quorum::{Tally, Verdict};
use crate::protocol::rules::Rule;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

impl Ownership {
    /// Lets `send` send the release to every node that may know the token. Later calls do nothing.
    fn release(&self, send: impl FnMut(usize, Parting)) {
        self.release_of(&mut self.standing(), send);
    }

    fn release_of(&self, standing: &mut Standing, mut send: impl FnMut(usize, Parting)) {
        if std::mem::replace(&mut standing.phase, Phase::Left) == Phase::Left {
            return;
        }
        standing.watchers.call();
        standing.settle(self.core.clock);
        self.learn_numbers(standing);
        let now = self.core.clock.now();
        let rest = standing.tenure.rest(now).filter(|_| self.core.rules.apply(Rule::WindowsAreKept));
        let rest = rest.map(lease::whole_millis);
        if let Some(rest) = rest {
            self.core.parked.park(*self.token(), now.after(rest), now);
        }
        let matters_until = now.after(self.ttl().max(lease::QUEUE_EXPIRY));
        for (index, node) in standing.nodes.iter_mut().enumerate() {
            let may_know = node.may_know();
            // First: a command whose script the server had lost is sent again as long as somebody waits for its answer.
            node.forget_answers();
            if may_know {
                let is_ours = node.vote == Vote::Granted;
                let rest = rest.filter(|_| is_ours);
                let verb = rest.map_or(Verb::Release { claim: self.terms.claim() }, |ttl| Verb::Extend { ttl });
                let command = Command { verb, fence: None, subject: Arc::clone(&self.subject) };
                let keeps_until = rest.map(|rest| now.after(rest));
                let matters_until = matters_until.max(keeps_until.unwrap_or(now));
                send(index, Parting { command, matters_until, keeps_until, expected: is_ours });
            }
        }
    }

    /// Gives the lock back, or the place in the queues; the answers are seen to in the background.
    pub(crate) fn give_back(&self) {
        self.release(|node, parting| self.core.give_back(node, parting));
    }

    /// Leaves the queues of the nodes, if the token stands there.
    pub(crate) fn leave_queues(&self) {
        let mut standing = self.standing();
        if standing.phase == Phase::Waiting {
            self.release_of(&mut standing, |node, parting| self.core.give_back(node, parting));
            let waker = standing.waker.take();
            drop(standing);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Gives the lock back; the answers can be waited for.
    pub(crate) fn leave(&self) -> Leaving {
        let mut leaving = Leaving::new(&self.core, &self.subject, self.lost());
        leaving.not_ours(self.standing().not_ours());
        self.release(|node, parting| leaving.send(node, parting));
        leaving
    }
}

/// Releases on their way. Dropped, they are seen through in the background.
#[must_use]
pub(crate) struct Leaving {
    core: Arc<Core>,
    subject: Arc<Subject>,
    /// The error when too many nodes do not hold the lock any more.
    lost: LockError,
    releases: Vec<Release>,
    /// Nodes that are known not to hold the lock for us, and were not asked.
    not_ours: usize,
}

struct Release {
    node: usize,
    sent: Unanswered,
    answer: Option<Answer>,
}

impl Leaving {
    pub(super) fn new(core: &Arc<Core>, subject: &Arc<Subject>, lost: LockError) -> Self {
        let releases = Vec::with_capacity(core.nodes.len());
        Self { core: Arc::clone(core), subject: Arc::clone(subject), lost, releases, not_ours: 0 }
    }

    pub(super) fn not_ours(&mut self, nodes: usize) {
        self.not_ours = nodes;
    }

    fn send(&mut self, node: usize, parting: Parting) {
        if let Some(reclaim) = self.core.nodes.get(node) {
            self.releases.push(Release { node, sent: reclaim.leave(parting), answer: None });
        }
    }

    /// Waits until a majority has confirmed the release.
    ///
    /// # Errors
    /// [`LockError::Lost`] when too many nodes did not hold the lock any more, [`LockError::NoQuorum`] when too few
    /// answered within `patience`.
    pub(crate) async fn confirmed(mut self, patience: Duration) -> Result<(), LockError> {
        let answers = poll_fn(|cx| {
            for release in self.releases.iter_mut().filter(|release| release.answer.is_none()) {
                if let Poll::Ready(answer) = release.sent.answer.poll_answer(cx) {
                    release.answer = Some(answer);
                }
            }
            match self.tally().verdict(self.core.quorum) {
                Verdict::Open => Poll::Pending,
                verdict => Poll::Ready(verdict),
            }
        });
        match tokio::time::timeout(patience, answers).await {
            Ok(Verdict::Reached) => Ok(()),
            Ok(Verdict::Contended) => Err(self.lost.clone()),
            Ok(_) => Err(self.unconfirmed(&NodeError::Unanswered)),
            Err(_) => Err(self.unconfirmed(&NodeError::TimedOut(patience))),
        }
    }

    fn tally(&self) -> Tally {
        // A node that was not asked has nothing to give back and confirms nothing.
        let failed = self.core.nodes.len() - self.releases.len() - self.not_ours;
        let mut tally = Tally { failed, held: self.not_ours, ..Tally::default() };
        for release in &self.releases {
            match &release.answer {
                None => tally.open += 1,
                Some(Ok(Reply::Released | Reply::Extended { .. })) => tally.granted += 1,
                Some(Ok(_)) => tally.held += 1,
                Some(Err(_)) => tally.failed += 1,
            }
        }
        tally
    }

    fn unconfirmed(&self, silence: &NodeError) -> LockError {
        let failures = self.releases.iter().filter_map(|release| {
            let error = match &release.answer {
                None => silence.clone(),
                Some(Ok(Reply::Released | Reply::Extended { .. })) => return None,
                Some(Ok(_)) => NodeError::Held,
                Some(Err(error)) => error.clone(),
            };
            let node = self.core.nodes.get(release.node)?.label().into();
            Some(NodeFailure { node, error })
        });
        self.core.no_quorum(Some(&self.subject.key), failures.collect())
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        for Release { node, mut sent, answer } in self.releases.drain(..) {
            if let Some(answer) = answer {
                sent.answer = Pending::answered(answer);
            }
            self.core.see_through(node, sent);
        }
    }
}
