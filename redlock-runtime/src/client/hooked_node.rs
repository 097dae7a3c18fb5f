//! Node for tests: state in memory, and a function of the test that sees each command before it is executed.

use crate::client::node_handle::NodeHandle;
use crate::client::shared::Shared;
use crate::error::NodeError;
use crate::lock::owner_token::ManagerId;
use crate::lock::{LockKey, OwnerToken};
use crate::node::report::NodeReport;
use crate::node::{BoxFuture, Environment, Node, Recipient, Status};
use crate::protocol::command::{Command, Subject};
use crate::protocol::node_state::NodeState;
use crate::protocol::rules::Rules;
use crate::request::Policy;
use crate::time::clock::Clock;
use std::fmt;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Fate of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Command is executed and answered.
    Answered,
    /// Command is executed, and its answer never arrives.
    Unanswered,
    /// Command never arrives.
    CutOff,
}

type Hook = Box<dyn Fn(&Command) -> Fate + Send + Sync>;

pub(crate) struct HookedNode {
    clock: Clock,
    state: Mutex<NodeState>,
    hook: Hook,
    /// Recipients of missing answers. Their callers wait as long as these live.
    unanswered: Mutex<Vec<Recipient>>,
    /// Tokens that were told that a body runs.
    told: Mutex<Vec<OwnerToken>>,
    /// Tokens that were told that the previous holder has stopped.
    stopped: Mutex<Vec<OwnerToken>>,
    abstains: AtomicBool,
    has_parts: AtomicBool,
    is_deaf: AtomicBool,
}

impl HookedNode {
    pub(crate) fn new(clock: Clock, hook: impl Fn(&Command) -> Fate + Send + Sync + 'static) -> Arc<Self> {
        let hook: Hook = Box::new(hook);
        let (state, unanswered, told, stopped, abstains, has_parts, is_deaf) = Default::default();
        Arc::new(Self { clock, state, hook, unanswered, told, stopped, abstains, has_parts, is_deaf })
    }

    /// Makes the node a cluster: from now on, each key has its own part.
    pub(crate) fn divide(&self) {
        self.has_parts.store(true, Ordering::Relaxed);
    }

    /// Makes the node abstain from now on.
    pub(crate) fn abstain(&self) {
        self.abstains.store(true, Ordering::Relaxed);
    }

    /// Drops all notifications from now on.
    pub(crate) fn deafen(&self) {
        self.is_deaf.store(true, Ordering::Relaxed);
    }

    pub(crate) fn told(&self) -> Vec<OwnerToken> {
        self.told.lock().unwrap().clone()
    }

    pub(crate) fn stopped(&self) -> Vec<OwnerToken> {
        self.stopped.lock().unwrap().clone()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().unwrap().is_empty(self.clock.now())
    }

    /// Creates the state of a manager with only this node.
    pub(crate) fn shared(self: &Arc<Self>) -> Shared {
        Self::shared_of([Arc::clone(self)], self.clock)
    }

    /// Creates the state of a manager with these nodes.
    pub(crate) fn shared_of<const N: usize>(nodes: [Arc<Self>; N], clock: Clock) -> Shared {
        let environment = Environment::for_single_node(ManagerId::numbered(7), clock);
        let nodes = Box::new(nodes.map(|node| NodeHandle::at_once(node, clock)));
        Shared::new(environment, clock, Policy::default(), nodes, Rules::default())
    }
}

impl Node for HookedNode {
    fn label(&self) -> &'static str {
        "hooked"
    }

    fn send_for(&self, command: Command, recipient: Recipient) {
        let fate = (self.hook)(&command);
        if fate == Fate::CutOff {
            return recipient.answer(Err(NodeError::Disconnected));
        }
        let (reply, _) = self.state.lock().unwrap().execute(self.clock.now(), &command, &mut |_, _| 1);
        if fate == Fate::Unanswered {
            self.unanswered.lock().unwrap().push(recipient);
        } else {
            recipient.answer(Ok(reply));
        }
    }

    fn has_parts(&self) -> bool {
        self.has_parts.load(Ordering::Relaxed)
    }

    fn status(&self) -> Status {
        Status::Up
    }

    fn abstains_for(&self) -> Option<Duration> {
        self.abstains.load(Ordering::Relaxed).then_some(Duration::MAX)
    }

    fn wait_until_up<'a>(&'a self, _key: &'a LockKey) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    fn epoch_of(&self, _key: &LockKey) -> u64 {
        0
    }

    fn listen(&self) {}

    fn is_listening_for(&self, _key: &LockKey) -> bool {
        !self.is_deaf.load(Ordering::Relaxed)
    }

    fn notify_body_running(&self, subject: &Subject) -> bool {
        self.told.lock().unwrap().push(subject.token);
        true
    }

    fn notify_stopped(&self, subject: &Subject) {
        self.stopped.lock().unwrap().push(subject.token);
    }

    fn time(&self) -> BoxFuture<'_, Result<Duration, NodeError>> {
        Box::pin(ready(Err(NodeError::Disconnected)))
    }

    fn report<'a>(&'a self, _key: &'a LockKey, _patience: Duration) -> BoxFuture<'a, NodeReport> {
        Box::pin(ready(NodeReport::in_memory(self.label())))
    }
}

impl fmt::Debug for HookedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookedNode").field("state", &self.state).finish_non_exhaustive()
    }
}
