//! Last command about a token that was sent and is not settled.

use super::release_ledger::ReleaseLedger;
use crate::error::NodeError;
use crate::lock::LockKey;
use crate::node::{Node, Pending, Recipient};
use crate::observe::{RedactedKey, events, held_back};
use crate::protocol::command::{Answer, Command, Reply, Subject};
use crate::protocol::last_command::{LastCommand, Settlement};
use crate::time::clock::Instant;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc;

/// Last command that was sent. It counts as unanswered until it is dropped.
#[derive(Debug)]
pub(crate) struct PendingRelease {
    ledger: Arc<ReleaseLedger>,
    subject: Arc<Subject>,
    last: LastCommand,
    pub(crate) answer: Pending,
    is_settled: bool,
    /// Set if the node was known to hold the lock for the token. Otherwise, there may have been nothing to release.
    was_held: bool,
    /// Set if only its connection tracks it.
    is_owed: bool,
}

/// Queue of a collector for releases that their first answers have not settled.
pub(crate) type CollectorQueue = mpsc::UnboundedSender<PendingRelease>;

impl PendingRelease {
    /// Sends `last` to `node`. The caller can wait for the answer.
    pub(crate) fn send(node: &dyn Node, ledger: &Arc<ReleaseLedger>, subject: Arc<Subject>, last: LastCommand) -> Self {
        let mut release = Self::new(ledger, subject, last);
        release.answer = node.send(release.command());
        release
    }

    /// Sends `last` to `node`. Its connection handles the first answer, because a task for each node would be woken for
    /// each release. If that answer does not settle the release, it goes to the collector.
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

    fn new(ledger: &Arc<ReleaseLedger>, subject: Arc<Subject>, mut last: LastCommand) -> Self {
        ledger.begin(&last);
        // A command that was sent to one part before may be executed behind the release at another part.
        last.ends_messages &= !ledger.has_parts;
        if last.ends_messages {
            ledger.leaving.begin(subject.token);
        }
        let (ledger, answer) = (Arc::clone(ledger), Pending::none());
        Self { ledger, subject, was_held: last.is_expected, last, answer, is_settled: false, is_owed: false }
    }

    fn command(&self) -> Command {
        Command { verb: self.last.verb, fence: None, subject: Arc::clone(&self.subject) }
    }

    pub(super) fn ledger(&self) -> &ReleaseLedger {
        &self.ledger
    }

    pub(super) fn key(&self) -> &LockKey {
        &self.subject.key
    }

    /// Logs an event with the node and the key, after the sender of the release has unlocked its mutexes.
    fn tell(&self, tell: impl FnOnce(&str, RedactedKey<'_>) + Send + 'static) {
        let (ledger, subject) = (Arc::clone(&self.ledger), Arc::clone(&self.subject));
        held_back::tell(move || {
            let key = RedactedKey::new(&subject.key, ledger.redaction.get().copied().unwrap_or_default());
            tell(&ledger.label, key);
        });
    }

    /// Returns `true` if the node was known to hold the lock for the token when it was first released.
    pub(crate) const fn was_held(&self) -> bool {
        self.was_held
    }

    pub(super) const fn matters_until(&self) -> Instant {
        self.last.matters_until
    }

    /// Completes the release in the background. If its answer has not arrived, it goes to the `queue` of the collector.
    pub(crate) fn follow_up(mut self, queue: Option<&CollectorQueue>) {
        match (self.answer.try_answer(), queue) {
            (Some(answer), queue) => self.answered(answer, queue),
            (None, Some(queue)) => {
                // If the collector is gone, dropping the release records that.
                let _ = queue.send(self);
            }
            // A node without a queue has answered.
            (None, None) => {}
        }
    }

    /// Handles the first answer.
    fn answered(mut self, answer: Answer, queue: Option<&CollectorQueue>) {
        self.record_answer();
        match queue {
            // A node that answers at once has no queue to leave.
            Some(queue) if self.last.settled_by(&answer) != Settlement::Settled => {
                self.answer = Pending::answered(answer);
                // If the collector is gone, dropping the release records that.
                let _ = queue.send(self);
            }
            _ => self.settle(&answer),
        }
    }

    /// Sends the release that has to follow `answer` at once, if any. Returns `true` if there is a further answer to
    /// wait for.
    pub(super) fn send_follow_up(&mut self, answer: &Answer, node: &dyn Node) -> bool {
        match self.last.settled_by(answer) {
            Settlement::LeavesQueue => self.last.leave_queue(),
            Settlement::Unfinished => self.last.find_next(),
            Settlement::Settled | Settlement::Open => return false,
        }
        self.answer = node.send(self.command());
        true
    }

    /// Returns `true` if the release need not be repeated after `answer`.
    pub(crate) fn is_settled_by(&self, answer: &Answer) -> bool {
        self.last.settled_by(answer) == Settlement::Settled
    }

    /// Sends the release again, after an answer that left it open.
    pub(crate) fn send_again(&mut self, node: &dyn Node, now: Instant) {
        self.ledger.sent_again.fetch_add(1, Ordering::Relaxed);
        self.leave();
        if self.last.is_heard_about {
            node.listen();
        }
        self.last.repeat(now);
        self.answer = node.send(self.command());
    }

    /// Returns `true` if an answer has arrived that leaves the release open, and removes it. A conclusive answer stays
    /// for the code that settles the release.
    pub(super) fn take_unsettled_answer(&mut self) -> bool {
        match self.answer.try_answer() {
            Some(answer) if self.is_settled_by(&answer) => {
                self.answer = Pending::answered(answer);
                false
            }
            answer => answer.is_some(),
        }
    }

    /// Ends the release, because of its `answer` or because the key has expired.
    pub(super) fn settle(mut self, answer: &Answer) {
        self.is_settled = true;
        match answer {
            Ok(Reply::NotOwner) if self.last.is_expected => {
                self.ledger.not_owner.fetch_add(1, Ordering::Relaxed);
                self.tell(events::released_late);
            }
            // The release was executed.
            Ok(_) | Err(NodeError::RecentlyRestarted(_)) => {}
            Err(_) if self.last.is_stray => {}
            Err(error) => self.count_as_abandoned(&error.to_string()),
        }
    }

    /// Counts and logs a release whose outcome is unknown and can no longer be determined.
    fn count_as_abandoned(&self, reason: &str) {
        self.ledger.abandoned.fetch_add(1, Ordering::Relaxed);
        let (reason, was_held) = (reason.to_owned(), self.was_held);
        self.tell(move |node, key| events::release_abandoned(node, key, reason, was_held));
    }

    /// Ends the suppression of releases for messages about the token.
    fn leave(&mut self) {
        if std::mem::take(&mut self.last.ends_messages) {
            self.ledger.leaving.end(&self.subject.token);
        }
    }

    /// Records an answer of the connection, if only the connection tracks the release.
    fn record_answer(&mut self) {
        if std::mem::take(&mut self.is_owed) {
            self.ledger.heard();
        }
    }
}

impl Drop for PendingRelease {
    fn drop(&mut self) {
        self.record_answer();
        self.leave();
        if !self.is_settled && !self.last.is_stray {
            self.count_as_abandoned("its task has ended");
        }
        self.ledger.end(&self.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::OwnerToken;
    use crate::lock::owner_token::ManagerId;
    use crate::node::Environment;
    use crate::node::memory::MemoryNode;
    use crate::time::clock::Clock;
    use crate::time::token_clock::TokenTime;
    use redlock_tests::subscribe;
    use std::sync::Mutex;
    use std::time::Duration;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    /// Subscriber that records the names and levels of events.
    #[derive(Clone, Default)]
    struct Keeper(Arc<Mutex<Vec<(&'static str, Level)>>>);

    impl Subscriber for Keeper {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            self.0.lock().unwrap().push((event.metadata().name(), *event.metadata().level()));
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[tokio::test]
    async fn abandoned_release_is_logged() {
        let (clock, keeper) = (Clock::tokio(), Keeper::default());
        let _kept = subscribe(keeper.clone());
        let (node, ledger) = (
            MemoryNode::new(clock, Environment::for_single_node(ManagerId::random(), clock)),
            Arc::new(ReleaseLedger::new("memory", clock)),
        );
        for is_expected in [true, false] {
            let token = OwnerToken::new(ManagerId::numbered(7), TokenTime::new(0, 0));
            let second = Duration::from_secs(1);
            let last = LastCommand { is_expected, ..LastCommand::release(second, second, clock.now()) };
            let release = PendingRelease::send(&node, &ledger, Arc::new(Subject::new("order:7".into(), token)), last);
            release.settle(&Err(NodeError::Disconnected));
        }
        assert_eq!(ledger.abandoned.load(Ordering::Relaxed), 2);
        let told = keeper.0.lock().unwrap();
        assert_eq!(*told, [("release_abandoned", Level::WARN), ("release_abandoned", Level::DEBUG)]);
    }

    /// Visitor that records the keys of events.
    #[derive(Clone, Default)]
    struct Keys(Arc<Mutex<Vec<String>>>);

    impl tracing::field::Visit for Keys {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
            if field.name() == "key" {
                self.0.lock().unwrap().push(format!("{value:?}"));
            }
        }
    }

    #[tokio::test]
    async fn key_of_a_stray_release_is_redacted_for_observers() {
        let keys = Keys::default();
        let _kept = subscribe(Listener(keys.clone()));
        for redacts in [false, true] {
            let builder = crate::LockManager::builder();
            let builder = if redacts { builder.redact_keys() } else { builder };
            let manager = builder.in_memory().unwrap();
            let (shared, now) = (manager.shared(), Clock::tokio().now());
            let subject = Arc::new(Subject::new("alice".into(), shared.new_token()));
            let last = LastCommand { is_expected: true, ..LastCommand::for_unknown_token(now) };
            shared.release(0, subject, last);
            let told = keys.0.lock().unwrap().pop().unwrap();
            assert_eq!((told == "alice", told.starts_with('#')), (!redacts, redacts), "{told}");
        }
    }

    struct Listener(Keys);

    impl Subscriber for Listener {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.0.clone());
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }
}
