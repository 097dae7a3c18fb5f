//! Connection of one manager to one server of a test. This is the fourth kind of node.
//!
//! A healthy server executes a command before `send` returns, so dropping a guard has released its lock. A task, the courier,
//! delivers late replies and wake-ups.

use super::server::{Parcel, Peer, Request, Server, Step};
use crate::error::NodeError;
use crate::lock::{LockKey, OwnerToken};
use crate::node::abstention::{Abstention, worth};
use crate::node::inspection::NodeInspection;
use crate::node::report::NodeReport;
use crate::node::server_facts::ServerFacts;
use crate::node::server_identity::Identity;
use crate::node::{BoxFuture, Environment, Node, Recipient, Status};
use crate::protocol::command::{Command, Notice, Occupant, Subject, Wakeup};
use crate::protocol::wakeup::channel;
use crate::stats::NodeStats;
use crate::time::wait_until::wait_until;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout_at};

pub(super) struct TestNode(Arc<End>);

/// Manager's end of a connection.
pub(super) struct End {
    server: Arc<Server>,
    wire: OnceLock<usize>,
    environment: Environment,
    facts: ServerFacts,
    /// Restart of the server, as far as the present connection shows it.
    abstention: Mutex<Abstention>,
    /// Notifies the courier of new work.
    due: Notify,
}

impl TestNode {
    /// Connects a manager, and starts the courier on the current runtime.
    pub(super) fn connect(server: &Arc<Server>, environment: Environment) -> Self {
        let facts = ServerFacts::new(&server.label, Arc::clone(&environment.servers));
        let own_channel = channel(&environment.manager.to_string());
        let (wire, abstention, due) = Default::default();
        let end = Arc::new(End { server: Arc::clone(server), wire, environment, facts, abstention, due });
        // No other task uses it yet.
        let peer: Arc<dyn Peer> = end.clone();
        let _ = end.wire.set(server.connect(Arc::downgrade(&peer), own_channel));
        if server.trouble(end.wire()).is_none() {
            end.meets(server.identity());
        }
        tokio::spawn(carry(Arc::clone(&end)));
        Self(end)
    }
}

/// Delivers due messages until the manager is dropped.
async fn carry(end: Arc<End>) {
    loop {
        match end.server.step(end.wire()) {
            Step::Hand(parcel) => end.take_in(parcel),
            Step::Wait(None) => end.due.notified().await,
            // The courier checks again after the first of both.
            Step::Wait(Some(at)) => drop(timeout_at(at, end.due.notified()).await),
            Step::End => return,
        }
    }
}

impl End {
    fn wire(&self) -> usize {
        self.wire.get().copied().unwrap_or_default()
    }

    /// Returns the reason for a missing connection.
    fn trouble(&self) -> Option<NodeError> {
        self.server.trouble(self.wire())
    }

    /// Waits for the reply time of a request that is not a command.
    async fn answers(&self) {
        let delay = self.server.delay();
        if !delay.is_zero() {
            sleep(delay).await;
        }
    }

    fn send(&self, request: Request) {
        if let Some(parcel) = self.server.send(self.wire(), request) {
            self.take_in(parcel);
        }
    }

    fn take_in(&self, parcel: Parcel) {
        let (recipient, sent, outcome) = match parcel {
            Parcel::Wakeup(Wakeup { subject, notice }) => {
                let notice = self.facts.proven(notice);
                return (self.environment.deliver)(Wakeup { subject, notice });
            }
            Parcel::Answer { recipient, sent, outcome } => (recipient, sent, outcome),
        };
        let executed = match outcome {
            Ok(executed) => executed,
            Err(error) => {
                self.facts.counters.failed(1);
                return recipient.answer(Err(error));
            }
        };
        let now = self.facts.now();
        self.facts.counters.answered(now.nanos_since(sent));
        self.facts.answered(sent, now);
        executed.seen.into_iter().for_each(|seen| self.environment.token_clock.observe(seen));
        self.facts.told(executed.time, sent);
        if let Some(proposal) = executed.proposal {
            self.environment.servers.on_proposal_reply(&proposal, self.facts.node(), &executed.reply);
        }
        let left = self.facts.abstains_for(self.abstention(), sent);
        recipient.answer(worth(Ok(executed.reply), left));
    }

    fn abstention(&self) -> Abstention {
        // No code that can panic runs under this mutex.
        *self.abstention.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer for End {
    fn wake(&self) {
        self.due.notify_one();
    }

    fn disconnected(&self) {
        self.facts.disconnected();
        self.environment.changed.notify_waiters();
        self.due.notify_one();
    }

    fn meets(&self, identity: Identity) {
        self.facts.connecting();
        self.facts.counters.connected();
        // Two addresses never lead to one server in a test.
        let abstention = self.facts.connected(Some(identity)).unwrap_or_default();
        *self.abstention.lock().unwrap_or_else(PoisonError::into_inner) = abstention;
        self.facts.told(self.server.time(), self.facts.now());
    }

    fn connected(&self) {
        self.environment.changed.notify_waiters();
        self.call_holders();
    }

    fn call_holders(&self) {
        (self.environment.connected)();
    }
}

impl Node for TestNode {
    fn label(&self) -> &str {
        &self.0.server.label
    }

    fn send_for(&self, command: Command, recipient: Recipient) {
        self.0.facts.counters.sent();
        let sent = self.0.facts.now();
        self.0.send(Request::Command { command, recipient, sent });
    }

    fn status(&self) -> Status {
        self.0.trouble().map_or(Status::Up, Status::Down)
    }

    fn abstains_for(&self) -> Option<Duration> {
        self.0.facts.abstains_for(self.0.abstention(), self.0.facts.now())
    }

    fn wait_until_up<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, ()> {
        Box::pin(wait_until(&self.0.environment.changed, || self.status_of(key) == Status::Up))
    }

    fn epoch_of(&self, _key: &LockKey) -> u64 {
        self.0.server.connections(self.0.wire())
    }

    fn listen(&self) {
        self.0.server.listen(self.0.wire());
    }

    fn is_listening_for(&self, _key: &LockKey) -> bool {
        self.0.server.is_listening(self.0.wire())
    }

    fn notify_body_running(&self, subject: &Subject) -> bool {
        self.publish(subject, Notice::Busy);
        self.0.trouble().is_none()
    }

    fn notify_stopped(&self, subject: &Subject) {
        self.publish(subject, Notice::Stopped);
    }

    fn notify_freed(&self, subject: &Subject) {
        self.publish(subject, Notice::Freed);
    }

    fn time(&self) -> BoxFuture<'_, Result<Duration, NodeError>> {
        let end = &self.0;
        Box::pin(async {
            end.answers().await;
            end.server.tell(end.wire()).map(|()| end.server.time())
        })
    }

    fn occupant_of(&self, key: &LockKey) -> BoxFuture<'static, Occupant> {
        let (end, key) = (Arc::clone(&self.0), key.clone());
        Box::pin(async move {
            end.answers().await;
            end.server.occupant(end.wire(), &key)
        })
    }

    fn holder_of(&self, key: &LockKey) -> BoxFuture<'static, Option<OwnerToken>> {
        let (end, key) = (Arc::clone(&self.0), key.clone());
        Box::pin(async move {
            end.answers().await;
            end.server.holder(end.wire(), &key)
        })
    }

    fn stats(&self) -> NodeStats {
        self.0.facts.counters.read(self.label(), self.status() == Status::Up)
    }

    fn inspect<'a>(
        &'a self,
        keys: &'a [LockKey],
        _named: bool,
        _patience: Duration,
    ) -> BoxFuture<'a, Vec<NodeInspection>> {
        let look = |key| match self.0.server.look(self.0.wire(), key) {
            Ok(seen) => NodeInspection::in_memory(self.label(), &seen),
            Err(error) => NodeInspection::silent(self.label(), error),
        };
        Box::pin(async move {
            self.0.answers().await;
            keys.iter().map(look).collect()
        })
    }

    fn report<'a>(&'a self, _key: &'a LockKey, _patience: Duration) -> BoxFuture<'a, NodeReport> {
        self.listen();
        Box::pin(async {
            self.0.answers().await;
            let error = self.0.server.tell(self.0.wire()).err();
            match error.or_else(|| self.abstains_for().map(NodeError::RecentlyRestarted)) {
                Some(error) => NodeReport { error: Some(error), ..NodeReport::unknown(self.label()) },
                None => NodeReport::in_memory(self.label()),
            }
        })
    }
}

impl TestNode {
    fn publish(&self, subject: &Subject, notice: Notice) {
        let subject = Subject::new(subject.key.clone(), subject.token);
        self.0.send(Request::Publish(Wakeup { subject, notice }));
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        self.0.server.leave(self.0.wire());
        self.0.due.notify_one();
    }
}

impl fmt::Debug for TestNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestNode").field(&self.0.server.label).finish()
    }
}
