//! Giving a lock back at every node that may hold it.

use crate::error::{LockError, NodeError, NodeFailure};
use crate::node::{Answer, Pending, Reply, Subject};
use crate::quorum::{Tally, Verdict};
use crate::reclaim::Unanswered;
use crate::shared::Core;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

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

    pub(super) fn add(&mut self, node: usize, sent: Unanswered) {
        self.releases.push(Release { node, sent, answer: None });
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
