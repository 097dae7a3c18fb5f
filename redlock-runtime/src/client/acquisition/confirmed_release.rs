//! Releases whose answers a caller waits for.

use crate::client::release::PendingRelease;
use crate::client::shared::Shared;
use crate::client::timers::{sleep, timeout};
use crate::error::{LockError, NodeError, NodeFailure};
use crate::node::Pending;
use crate::protocol::command::{Answer, Reply, Subject};
use crate::protocol::last_command::LastCommand;
use crate::protocol::quorum::{Tally, Verdict};
use crate::protocol::timing::AFTER_FAILURE;
use crate::time::clock::Instant;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Releases in flight. On drop, they are completed in the background.
#[must_use]
pub(crate) struct ConfirmedRelease {
    shared: Arc<Shared>,
    subject: Arc<Subject>,
    /// Error for the case that too many nodes do not hold the lock any longer.
    lost: LockError,
    releases: Vec<Sent>,
    /// Number of nodes that are known not to hold the lock for us, and were not asked.
    taken: usize,
}

struct Sent {
    index: usize,
    release: PendingRelease,
    answer: Option<Answer>,
    /// `true` if the answer is that to a repeated release.
    is_repeated: bool,
}

impl Sent {
    /// Returns `true` if the node has confirmed that it does not keep the lock for the token. If a release is repeated, the first one may
    /// have been executed, and the node no longer knows the token.
    fn is_confirmed(&self) -> bool {
        match &self.answer {
            Some(Ok(
                Reply::Released | Reply::Unfinished { was_owner: true } | Reply::Extended { .. } | Reply::Found { .. },
            )) => true,
            Some(Ok(Reply::NotOwner | Reply::Unfinished { .. })) => self.is_repeated && self.release.was_held(),
            _ => false,
        }
    }
}

impl ConfirmedRelease {
    pub(super) fn new(shared: &Arc<Shared>, subject: &Arc<Subject>, lost: LockError, taken: usize) -> Self {
        let releases = Vec::with_capacity(shared.nodes.len());
        Self { shared: Arc::clone(shared), subject: Arc::clone(subject), lost, releases, taken }
    }

    /// Sends the last command to node number `index`.
    pub(super) fn send(&mut self, index: usize, last: LastCommand) {
        if let Some(node) = self.shared.nodes.get(index) {
            let release = node.release(Arc::clone(&self.subject), last);
            self.releases.push(Sent { index, release, answer: None, is_repeated: false });
        }
    }

    /// Waits until a majority has confirmed the release. Releases that failed, for example with a broken connection,
    /// are repeated.
    ///
    /// # Errors
    /// [`LockError::Lost`] if too many nodes did not hold the lock any longer, [`LockError::NoQuorum`] if too few
    /// answered within `patience`.
    pub(crate) async fn confirmed(mut self, patience: Duration) -> Result<(), LockError> {
        let limit = self.shared.clock.now().after(patience);
        match timeout(patience, self.decided(limit)).await {
            Ok(Verdict::Reached) => Ok(()),
            Ok(Verdict::Contended) => Err(self.lost.clone()),
            Ok(_) => Err(self.unconfirmed(&NodeError::NoReply)),
            Err(_) => Err(self.unconfirmed(&NodeError::TimedOut(patience))),
        }
    }

    /// Waits for the answers, and repeats failed releases while there is time until `limit`.
    async fn decided(&mut self, limit: Instant) -> Verdict {
        loop {
            let verdict = poll_fn(|cx| {
                for sent in self.releases.iter_mut().filter(|sent| sent.answer.is_none()) {
                    if let Poll::Ready(answer) = sent.release.answer.poll_answer(cx) {
                        sent.answer = Some(answer);
                    }
                }
                match self.tally().verdict(self.shared.quorum) {
                    Verdict::Open => Poll::Pending,
                    verdict => Poll::Ready(verdict),
                }
            });
            let verdict = verdict.await;
            let has_time = limit.since(self.shared.clock.now()) > AFTER_FAILURE;
            if matches!(verdict, Verdict::Reached | Verdict::Contended) || !has_time || self.shared.is_closed() {
                return verdict;
            }
            sleep(AFTER_FAILURE).await;
            self.repeat_failed();
        }
    }

    /// Sends the releases again that have failed and may not have been executed.
    fn repeat_failed(&mut self) {
        let now = self.shared.clock.now();
        for sent in &mut self.releases {
            let is_open =
                sent.answer.as_ref().is_some_and(|answer| answer.is_err() && !sent.release.is_settled_by(answer));
            if let Some(node) = self.shared.nodes.get(sent.index).filter(|_| is_open) {
                sent.release.send_again(node.node(), now);
                (sent.answer, sent.is_repeated) = (None, true);
            }
        }
    }

    /// Returns the answers so far.
    fn tally(&self) -> Tally {
        // A node that was not asked has nothing to release, and confirms nothing.
        let failed = self.shared.nodes.len() - self.releases.len() - self.taken;
        let mut tally = Tally { failed, taken: self.taken, ..Tally::default() };
        for sent in &self.releases {
            match &sent.answer {
                None => tally.open += 1,
                Some(_) if sent.is_confirmed() => tally.granted += 1,
                Some(Ok(_)) => tally.taken += 1,
                Some(Err(_)) => tally.failed += 1,
            }
        }
        tally
    }

    /// Returns the error for too few confirmations; `silence` is the cause for nodes that have not answered.
    fn unconfirmed(&self, silence: &NodeError) -> LockError {
        let failures = self.releases.iter().filter_map(|sent| {
            let error = match &sent.answer {
                None => silence.clone(),
                Some(_) if sent.is_confirmed() => return None,
                Some(Ok(_)) => NodeError::Held,
                Some(Err(error)) => error.clone(),
            };
            let node = self.shared.nodes.get(sent.index)?.label().into();
            Some(NodeFailure { node, error })
        });
        self.shared.no_quorum(Some(&self.subject.key), failures.collect())
    }
}

impl Drop for ConfirmedRelease {
    fn drop(&mut self) {
        for Sent { index, mut release, answer, .. } in self.releases.drain(..) {
            if let Some(answer) = answer {
                release.answer = Pending::answered(answer);
            }
            self.shared.follow_up(index, release);
        }
    }
}
