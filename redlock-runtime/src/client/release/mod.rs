//! Releases in the background: every release is kept until its node has answered.
//!
//! `Drop` can send a release but cannot wait for the answer. The answer still matters: a server may have lost its
//! scripts, and a connection may break with the release on it. So each node has a [`collector`] that takes over what the
//! first answer has not settled.

mod collector;
mod ledger;

use self::collector::Collector;
pub(crate) use self::ledger::Ledger;
use crate::error::NodeError;
use crate::lock::LockKey;
use crate::node::{Node, Pending, Recipient, Status};
use crate::protocol::command::{Answer, Command, Reply, Verb};
use crate::protocol::lease;
use crate::protocol::lease::CLAIM;
use crate::time::clock::{Clock, Instant};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// A node together with the releases that it has not answered.
pub(crate) struct Reclaim {
    node: Arc<dyn Node>,
    ledger: Arc<Ledger>,
    queue: Option<mpsc::UnboundedSender<Unanswered>>,
}

/// The last command about a token.
pub(crate) struct Parting {
    pub(crate) command: Command,
    /// The key has expired by then, so that the command has nothing left to do.
    pub(crate) matters_until: Instant,
    /// Until when the key is to stay taken, if the command keeps it instead of giving it back.
    pub(crate) keeps_until: Option<Instant>,
    /// Whether the node is known to hold the lock for the token.
    pub(crate) expected: bool,
}

/// A release that was sent. It counts as unanswered until it is dropped.
#[derive(Debug)]
pub(crate) struct Unanswered {
    ledger: Arc<Ledger>,
    command: Command,
    pub(crate) answer: Pending,
    /// The key has expired by then, so that the release has nothing left to do.
    matters_until: Instant,
    /// Until when the key is to stay taken: what is sent by then keeps it, and what is sent later gives it back.
    keeps_until: Option<Instant>,
    is_settled: bool,
    /// Whether nobody but its connection looks after it.
    is_owed: bool,
    /// Whether the node is known to have held the lock for us, and to have been asked only once to give it back.
    expected: bool,
}

impl Reclaim {
    /// For a node that answers later: `runtime` runs the task that sees to what the first answers have not settled.
    pub(crate) fn in_background(node: Arc<dyn Node>, clock: Clock, runtime: &Handle) -> Self {
        let ledger = Arc::new(Ledger::new(node.label(), clock));
        let (queue, unanswered) = mpsc::unbounded_channel();
        runtime.spawn(Collector::new(Arc::clone(&node), clock, Arc::clone(&ledger), unanswered).run());
        Self { node, ledger, queue: Some(queue) }
    }

    /// For a node that answers at once.
    pub(crate) fn at_once(node: Arc<dyn Node>, clock: Clock) -> Self {
        let ledger = Arc::new(Ledger::new(node.label(), clock));
        Self { node, ledger, queue: None }
    }

    pub(crate) const fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    pub(crate) fn node(&self) -> &dyn Node {
        &*self.node
    }

    pub(crate) fn status(&self) -> Status {
        self.node.status()
    }

    pub(crate) fn label(&self) -> &str {
        self.node.label()
    }

    pub(crate) fn epoch(&self, key: &LockKey) -> u64 {
        self.node.epoch_of(key)
    }

    /// Whether a token may join the queue of `key`: its wake-ups will arrive, or there is no connection at all.
    pub(crate) fn is_ready_to_queue(&self, key: &LockKey) -> bool {
        self.node.is_listening_for(key) || self.node.status_of(key) != Status::Up
    }

    pub(crate) fn listen(&self) {
        self.node.listen();
    }

    /// Sends `command` at `now`, unless the node owes too many answers.
    pub(crate) fn ask(&self, command: Command, now: Instant) -> Pending {
        match self.ledger.refusal(now) {
            // A node without a connection knows a better reason.
            Some(refusal) if self.node.status_of(&command.subject.key) == Status::Up => Pending::answered(Err(refusal)),
            _ => self.node.send(command),
        }
    }

    /// Sends the last command about a token, whatever the node owes. The answer can be waited for.
    pub(crate) fn leave(&self, parting: Parting) -> Unanswered {
        let mut release = Unanswered::new(&self.ledger, parting);
        release.answer = self.node.send(release.command.clone());
        release
    }

    /// The same, in the background.
    ///
    /// Its connection sees to the answer, as long as that is one: a task for each node would be woken for each release.
    pub(crate) fn give_back(&self, parting: Parting) {
        let mut release = Unanswered::new(&self.ledger, parting);
        release.owes();
        let (command, queue) = (release.command.clone(), self.queue.clone());
        self.node.send_for(command, Recipient::background(move |answer| release.answered(answer, queue.as_ref())));
    }

    /// Sees to it that `release` is answered.
    pub(crate) fn see_through(&self, mut release: Unanswered) {
        match (release.answer.try_answer(), &self.queue) {
            (Some(answer), queue) => release.answered(answer, queue.as_ref()),
            (None, Some(queue)) => {
                // A collector that is gone is accounted for by the drop.
                let _ = queue.send(release);
            }
            // A node without a queue has answered.
            (None, None) => {}
        }
    }
}

impl fmt::Debug for Reclaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reclaim").field("node", &self.node).field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

impl Unanswered {
    fn new(ledger: &Arc<Ledger>, parting: Parting) -> Self {
        let Parting { command, matters_until, keeps_until, expected } = parting;
        ledger.unanswered.fetch_add(1, Ordering::Relaxed);
        ledger.matters_until.fetch_max(matters_until.millis(), Ordering::Relaxed);
        let (ledger, answer) = (Arc::clone(ledger), Pending::none());
        Self { ledger, command, answer, matters_until, keeps_until, is_settled: false, is_owed: false, expected }
    }

    fn key(&self) -> &LockKey {
        &self.command.subject.key
    }

    fn owes(&mut self) {
        self.ledger.owes();
        self.is_owed = true;
    }

    fn is_heard(&mut self) {
        if std::mem::take(&mut self.is_owed) {
            self.ledger.heard();
        }
    }

    /// What settles nothing goes to the collector, on whose `queue` that waits.
    fn answered(mut self, answer: Answer, queue: Option<&mpsc::UnboundedSender<Self>>) {
        self.is_heard();
        match queue {
            // A node that answers at once has no queue to leave.
            Some(queue) if !settles(&answer) || self.is_to_leave(&answer) => {
                self.answer = Pending::answered(answer);
                // A collector that is gone is accounted for by the drop.
                let _ = queue.send(self);
            }
            _ => self.settle(&answer),
        }
    }

    fn settle(mut self, answer: &Answer) {
        self.is_settled = true;
        match answer {
            Ok(Reply::NotOwner) if self.expected => {
                self.ledger.not_owner.fetch_add(1, Ordering::Relaxed);
                let node = &self.ledger.label;
                tracing::warn!(%node, key = %self.command.subject.key, "the lock was not ours any more at its release");
            }
            // It was executed.
            Ok(_) | Err(NodeError::Abstains(_)) => {}
            Err(error) => self.abandon(&error.to_string()),
        }
    }

    fn abandon(&self, reason: &str) {
        self.ledger.abandoned.fetch_add(1, Ordering::Relaxed);
        let key = &self.command.subject.key;
        tracing::warn!(%key, reason, "a release was not confirmed; the key expires by itself");
    }

    fn is_to_leave(&self, answer: &Answer) -> bool {
        self.keeps_until.is_some() && matches!(answer, Ok(Reply::NotOwner))
    }

    /// After an answer that says that there is no key to keep: what was asked before it may have been executed late, and
    /// have put the token into the queue. Whether that is to be left.
    fn leaves_after(&mut self, answer: &Answer, node: &dyn Node) -> bool {
        let leaves = self.is_to_leave(answer);
        if leaves {
            self.keeps_until = None;
            self.command.verb = Verb::Release { claim: CLAIM };
            self.answer = node.send(self.command.clone());
        }
        leaves
    }

    /// Sends the release once more, after an answer that settled nothing.
    fn send_again(&mut self, node: &dyn Node, now: Instant) {
        self.ledger.sent_again.fetch_add(1, Ordering::Relaxed);
        // The first one may have been executed, and its answer lost.
        self.expected = false;
        if let Some(until) = self.keeps_until {
            let ttl = lease::whole_millis(until.since(now));
            self.command.verb = if ttl.is_zero() { Verb::Release { claim: CLAIM } } else { Verb::Extend { ttl } };
        }
        self.answer = node.send(self.command.clone());
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.is_heard();
        if !self.is_settled {
            self.abandon("the runtime has ended");
        }
        if self.ledger.unanswered.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.ledger.answered.notify_waiters();
        }
    }
}

/// A broken connection leaves open whether the release was executed, and a server that is busy, loading or failing over
/// will execute it later. Any other answer settles it.
fn settles(answer: &Answer) -> bool {
    const PASSING: [&str; 8] =
        ["BUSY ", "CLUSTERDOWN ", "LOADING ", "MASTERDOWN ", "MISCONF ", "NOREPLICAS ", "READONLY ", "TRYAGAIN "];
    match answer {
        Ok(_) | Err(NodeError::Abstains(_)) => true,
        // Before Redis 7, the error of a script has the code of the command in it somewhere in its text.
        Err(NodeError::Refused(answer)) => !PASSING.iter().any(|code| answer.contains(code)),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_passes_settles_nothing() {
        let table = [
            (Ok(Reply::Released), true),
            (Ok(Reply::NotOwner), true),
            (Err(NodeError::Abstains(Duration::ZERO)), true),
            (Err(NodeError::Disconnected), false),
            (Err(NodeError::Unreachable("".into())), false),
            (Err(NodeError::Refused("BUSY Redis is busy running a script.".into())), false),
            (Err(NodeError::Refused("LOADING Redis is loading the dataset in memory".into())), false),
            (Err(NodeError::Refused("MISCONF Redis is configured to save RDB snapshots".into())), false),
            (Err(NodeError::Refused("READONLY You can't write against a read only replica.".into())), false),
            (Err(NodeError::Refused("NOPERM this user has no permissions".into())), true),
            (Err(NodeError::Refused("BUSYKEY Target key name already exists.".into())), true),
        ];
        for (answer, is_settled) in table {
            assert_eq!(settles(&answer), is_settled, "{answer:?}");
        }
    }
}
