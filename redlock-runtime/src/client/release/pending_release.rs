//! One last command that was sent and is not settled.

use super::release_ledger::ReleaseLedger;
use crate::error::NodeError;
use crate::lock::LockKey;
use crate::node::{Node, Pending, Recipient};
use crate::protocol::command::{Answer, Command, Reply, Subject};
use crate::protocol::last_command::{LastCommand, Settlement, is_conclusive};
use crate::time::clock::Instant;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc;

/// A last command that was sent. It counts as unanswered until it is dropped.
#[derive(Debug)]
pub(crate) struct PendingRelease {
    ledger: Arc<ReleaseLedger>,
    subject: Arc<Subject>,
    last: LastCommand,
    pub(crate) answer: Pending,
    is_settled: bool,
    /// Whether the node was known to hold the lock for the token. Otherwise nothing may have been there to give back.
    was_held: bool,
    /// Whether nobody but its connection looks after it.
    is_owed: bool,
}

/// Where a collector takes releases from that their first answers have not settled.
pub(crate) type CollectorQueue = mpsc::UnboundedSender<PendingRelease>;

impl PendingRelease {
    /// Sends `last` to `node`. The answer can be waited for.
    pub(crate) fn send(node: &dyn Node, ledger: &Arc<ReleaseLedger>, subject: Arc<Subject>, last: LastCommand) -> Self {
        let mut release = Self::new(ledger, subject, last);
        release.answer = node.send(release.command());
        release
    }

    /// Sends `last` to `node`, whose connection sees to the answer as long as that settles it: a task for each node would
    /// be woken for each release. What it does not settle goes to the collector.
    pub(crate) fn send_in_background(
        node: &dyn Node,
        ledger: &Arc<ReleaseLedger>,
        subject: Arc<Subject>,
        last: LastCommand,
        queue: Option<CollectorQueue>,
    ) {
        let mut release = Self::new(ledger, subject, last);
        release.ledger.owes();
        release.is_owed = true;
        let command = release.command();
        node.send_for(command, Recipient::background(move |answer| release.answered(answer, queue.as_ref())));
    }

    fn new(ledger: &Arc<ReleaseLedger>, subject: Arc<Subject>, last: LastCommand) -> Self {
        ledger.begin(last.matters_until);
        if last.ends_messages {
            ledger.leaving.begin(subject.token);
        }
        let (ledger, answer) = (Arc::clone(ledger), Pending::none());
        Self { ledger, subject, was_held: last.is_expected, last, answer, is_settled: false, is_owed: false }
    }

    fn command(&self) -> Command {
        Command { verb: self.last.verb, fence: None, subject: Arc::clone(&self.subject) }
    }

    pub(super) fn key(&self) -> &LockKey {
        &self.subject.key
    }

    pub(super) const fn matters_until(&self) -> Instant {
        self.last.matters_until
    }

    /// Sees to it that the release is settled, by way of the collector's `queue` where its answer is not here yet.
    pub(crate) fn follow_up(mut self, queue: Option<&CollectorQueue>) {
        match (self.answer.try_answer(), queue) {
            (Some(answer), queue) => self.answered(answer, queue),
            (None, Some(queue)) => {
                // A collector that is gone is accounted for by the drop.
                let _ = queue.send(self);
            }
            // A node without a queue has answered.
            (None, None) => {}
        }
    }

    /// The first answer is here.
    fn answered(mut self, answer: Answer, queue: Option<&CollectorQueue>) {
        self.note_heard();
        match queue {
            // A node that answers at once has no queue to leave.
            Some(queue) if self.last.settled_by(&answer) != Settlement::Settled => {
                self.answer = Pending::answered(answer);
                // A collector that is gone is accounted for by the drop.
                let _ = queue.send(self);
            }
            _ => self.settle(&answer),
        }
    }

    /// After an `answer` that was waited for: whether another one is to be waited for, because the queue is left now.
    pub(super) fn leaves_queue_after(&mut self, answer: &Answer, node: &dyn Node) -> bool {
        let leaves = self.last.settled_by(answer) == Settlement::LeavesQueue;
        if leaves {
            self.last.leave_queue();
            self.answer = node.send(self.command());
        }
        leaves
    }

    /// Sends the release once more, after an answer that left it open.
    pub(super) fn send_again(&mut self, node: &dyn Node, now: Instant) {
        self.ledger.sent_again.fetch_add(1, Ordering::Relaxed);
        self.leave();
        self.last.repeat(now);
        self.answer = node.send(self.command());
    }

    /// Whether an answer is here that leaves the release open; it is taken out then. A conclusive one stays, for whoever
    /// settles the release.
    pub(super) fn is_open_by_now(&mut self) -> bool {
        match self.answer.try_answer() {
            Some(answer) if is_conclusive(&answer) => {
                self.answer = Pending::answered(answer);
                false
            }
            answer => answer.is_some(),
        }
    }

    /// Nothing more is to be done, by what the `answer` says or because the key has expired.
    pub(super) fn settle(mut self, answer: &Answer) {
        self.is_settled = true;
        match answer {
            Ok(Reply::NotOwner) if self.last.is_expected => {
                self.ledger.not_owner.fetch_add(1, Ordering::Relaxed);
                let node = &self.ledger.label;
                tracing::warn!(%node, key = %self.subject.key, "the lock was not ours any more at its release");
            }
            // It was executed.
            Ok(_) | Err(NodeError::Abstains(_)) => {}
            Err(error) => self.count_as_abandoned(&error.to_string()),
        }
    }

    /// Nobody knows whether it was executed, and nobody will find out.
    fn count_as_abandoned(&self, reason: &str) {
        self.ledger.abandoned.fetch_add(1, Ordering::Relaxed);
        let (key, node) = (&self.subject.key, &self.ledger.label);
        if self.was_held {
            tracing::warn!(%node, %key, reason, "a release was not confirmed; the key expires by itself");
        } else {
            // Nobody here had the lock, so that nobody has to look for what is left of it.
            tracing::debug!(%node, %key, reason, "a token may be left; it expires by itself");
        }
    }

    /// Messages about the token that come from now on are answered.
    fn leave(&mut self) {
        if std::mem::take(&mut self.last.ends_messages) {
            self.ledger.leaving.end(&self.subject.token);
        }
    }

    /// The connection has answered, if nobody else looks after the answer.
    fn note_heard(&mut self) {
        if std::mem::take(&mut self.is_owed) {
            self.ledger.heard();
        }
    }
}

impl Drop for PendingRelease {
    fn drop(&mut self) {
        self.note_heard();
        self.leave();
        if !self.is_settled {
            self.count_as_abandoned("its task has ended");
        }
        self.ledger.end();
    }
}
