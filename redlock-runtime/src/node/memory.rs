//! The embedded node: the commands of a Redis node on state in memory, in virtual time when tokio's clock is paused.

use crate::error::NodeError;
use crate::lock::{LockKey, OwnerToken};
use crate::node::inspection::NodeInspection;
use crate::node::pending::{Pending, Recipient};
use crate::node::report::NodeReport;
use crate::node::status::Status;
use crate::node::{BoxFuture, Node};
use crate::protocol::command::{Command, Occupant, Reply};
use crate::protocol::node_state::NodeState;
use crate::time::clock::Clock;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct MemoryNode {
    clock: Clock,
    state: Mutex<NodeState>,
}

impl MemoryNode {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, state: Mutex::default() }
    }

    fn execute(&self, command: &Command) -> Reply {
        // Nobody listens: whoever waits for a lock of this process waits in the process. And all tokens have their
        // times from one clock.
        let (reply, _) = self.state().execute(self.clock.now(), command, &mut |_, _| 0);
        reply
    }

    fn state(&self) -> MutexGuard<'_, NodeState> {
        // No code that can panic runs under this mutex.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node for MemoryNode {
    fn label(&self) -> &'static str {
        "memory"
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

    fn up_for<'a>(&'a self, _key: &'a LockKey) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    fn epoch_of(&self, _key: &LockKey) -> u64 {
        0
    }

    fn listen(&self) {}

    /// There are no wake-ups to miss: all who wait for the node wait in the line of this process.
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

    fn hands_over(&self) -> bool {
        false
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
