//! The embedded node: executes the commands of a Redis node on state in memory, in virtual time if tokio's clock is paused.
//!
//! All its waiters are in this process. The sender of a command may hold the mutex of an acquisition, and a notification may concern any
//! other acquisition. Notifications are therefore stored until a caller without such a mutex delivers them: the waiters are woken, and the
//! first of them delivers the notifications to all ([`deliver`](Node::deliver)).

use crate::error::NodeError;
use crate::lock::{LockKey, OwnerToken};
use crate::node::inspection::NodeInspection;
use crate::node::pending::{Pending, Recipient};
use crate::node::report::NodeReport;
use crate::node::status::Status;
use crate::node::{BoxFuture, Environment, Node};
use crate::protocol::command::{Command, Occupant, Reply, Wakeup};
use crate::protocol::node_state::NodeState;
use crate::time::clock::Clock;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Label of the node: a manager has at most one.
const LABEL: &str = "memory";

#[derive(Debug)]
pub(crate) struct MemoryNode {
    clock: Clock,
    state: Mutex<NodeState>,
    environment: Environment,
    /// Notifications that are not delivered yet.
    said: Mutex<Vec<Wakeup>>,
}

impl MemoryNode {
    pub(crate) fn new(clock: Clock, environment: Environment) -> Self {
        environment.servers.record_clock_offset(LABEL, LABEL, None);
        Self { clock, state: Mutex::default(), environment, said: Mutex::default() }
    }

    fn execute(&self, command: &Command) -> Reply {
        let (ours, mut said) = (self.environment.manager.to_string(), Vec::new());
        let mut publish = |_: &str, wakeup: Wakeup| {
            let is_ours = wakeup.subject.token.manager() == ours;
            said.extend(is_ours.then_some(wakeup));
            usize::from(is_ours)
        };
        // All tokens have their times from one clock.
        let (reply, _) = self.state().execute(self.clock.now(), command, &mut publish);
        if !said.is_empty() {
            self.said().append(&mut said);
            self.environment.changed.notify_waiters();
        }
        reply
    }

    fn said(&self) -> MutexGuard<'_, Vec<Wakeup>> {
        // No code that can panic runs under this mutex.
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, NodeState> {
        // No code that can panic runs under this mutex.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node for MemoryNode {
    fn label(&self) -> &'static str {
        LABEL
    }

    fn send(&self, command: Command) -> Pending {
        Pending::answered(Ok(self.execute(&command)))
    }

    fn send_for(&self, command: Command, recipient: Recipient) {
        recipient.answer(Ok(self.execute(&command)));
    }

    fn status(&self) -> Status {
        Status::Up
    }

    fn wait_until_up<'a>(&'a self, _key: &'a LockKey) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    fn epoch_of(&self, _key: &LockKey) -> u64 {
        0
    }

    fn listen(&self) {}

    fn deliver(&self) {
        loop {
            // Without a mutex: the receiver may send commands that cause further notifications.
            let said = std::mem::take(&mut *self.said());
            if said.is_empty() {
                return;
            }
            for wakeup in said {
                (self.environment.deliver)(wakeup);
            }
        }
    }

    /// Always `true`: wake-ups are stored until they are delivered, and cannot be missed.
    fn is_listening_for(&self, _key: &LockKey) -> bool {
        true
    }

    fn occupant_of(&self, key: &LockKey) -> BoxFuture<'static, Occupant> {
        Box::pin(ready(self.state().occupant(key.name(), self.clock.now())))
    }

    fn holder_of(&self, key: &LockKey) -> BoxFuture<'static, Option<OwnerToken>> {
        Box::pin(ready(self.state().look(key, self.clock.now()).holder.map(|holder| holder.token)))
    }

    fn time(&self) -> BoxFuture<'_, Result<Duration, NodeError>> {
        Box::pin(ready(Ok(Duration::from_millis(self.clock.wall_ms()))))
    }

    fn inspect<'a>(
        &'a self,
        keys: &'a [LockKey],
        _named: bool,
        _patience: Duration,
    ) -> BoxFuture<'a, Vec<NodeInspection>> {
        let (state, now) = (self.state(), self.clock.now());
        let looked = keys.iter().map(|key| NodeInspection::in_memory(self.label(), &state.look(key, now)));
        Box::pin(ready(looked.collect()))
    }

    fn report<'a>(&'a self, _key: &'a LockKey, _patience: Duration) -> BoxFuture<'a, NodeReport> {
        Box::pin(ready(NodeReport::in_memory(self.label())))
    }
}
