//! A Redis server as a node: one multiplexed connection, kept up by a supervisor.

mod answer;
mod backoff;
mod connect;
mod courier;
pub(crate) mod endpoint;
mod info;
mod link;
mod outbox;
mod prepare;
mod report;
mod script;
mod side_key;
mod socket;
mod subscriber;
mod supervisor;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;

use self::endpoint::Endpoint;
use self::link::Link;
use self::supervisor::Supervised;
use crate::error::NodeError;
use crate::lock::LockKey;
use crate::node::report::NodeReport;
use crate::node::{BoxFuture, Environment, Node, Recipient, Server, Status};
use crate::protocol::command::Command;
use crate::time::wait_until::wait_until;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

pub(crate) struct RedisNode {
    label: Box<str>,
    shared: Arc<Shared>,
    /// Ends the supervisor and the subscriber, and with them the connections, when the node is dropped.
    tasks: [AbortHandle; 2],
}

/// What the tasks of the connections write and the callers read.
struct Shared {
    environment: Environment,
    server: Arc<Server>,
    state: RwLock<State>,
    /// How many connections there have been.
    epoch: AtomicU64,
    /// Whether wake-ups are wanted.
    is_wanted: AtomicBool,
    /// Whether the connection for wake-ups stands, where there is one.
    is_subscribed: AtomicBool,
}

enum State {
    Starting,
    Up(Arc<Link>),
    Down(NodeError),
}

impl RedisNode {
    /// Starts to connect to `endpoint` on `runtime`.
    pub(crate) fn start(endpoint: Endpoint, environment: Environment, runtime: &Handle) -> Arc<Self> {
        let (shared, endpoint) = (Arc::new(Shared::new(endpoint.label(), environment)), Arc::new(endpoint));
        let supervisor = supervisor::supervise(Arc::clone(&endpoint), Supervised(Arc::clone(&shared)));
        let subscriber = subscriber::listen(Arc::clone(&endpoint), Arc::clone(&shared));
        let tasks = [runtime.spawn(supervisor).abort_handle(), runtime.spawn(subscriber).abort_handle()];
        Arc::new(Self { label: endpoint.label().into(), shared, tasks })
    }
}

impl Node for RedisNode {
    fn label(&self) -> &str {
        &self.label
    }

    fn send_for(&self, command: Command, recipient: Recipient) {
        match self.shared.link() {
            Ok(link) => link.send(command, recipient),
            Err(error) => recipient.answer(Err(error)),
        }
    }

    fn status(&self) -> Status {
        match &*self.shared.state() {
            State::Starting => Status::Starting,
            State::Up(_) => Status::Up,
            State::Down(error) => Status::Down(error.clone()),
        }
    }

    fn up_for<'a>(&'a self, key: &'a LockKey) -> BoxFuture<'a, ()> {
        Box::pin(wait_until(&self.shared.environment.changed, || self.status_of(key) == Status::Up))
    }

    fn epoch_of(&self, _key: &LockKey) -> u64 {
        self.shared.epoch.load(Ordering::Acquire)
    }

    fn listen(&self) {
        self.shared.listen();
    }

    fn is_listening_for(&self, _key: &LockKey) -> bool {
        self.shared.is_listening()
    }

    fn report(&self, patience: Duration) -> BoxFuture<'_, NodeReport> {
        Box::pin(report::report(&self.label, &self.shared, patience))
    }
}

impl Drop for RedisNode {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl fmt::Debug for RedisNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisNode").field("label", &self.label).field("status", &self.status()).finish_non_exhaustive()
    }
}

impl Shared {
    fn new(address: &str, environment: Environment) -> Self {
        Self {
            server: Arc::new(Server::new(address, Arc::clone(&environment.servers))),
            environment,
            state: RwLock::new(State::Starting),
            epoch: AtomicU64::new(0),
            is_wanted: AtomicBool::new(false),
            is_subscribed: AtomicBool::new(false),
        }
    }

    fn link(&self) -> Result<Arc<Link>, NodeError> {
        match &*self.state() {
            State::Starting => Err(NodeError::Unreachable("the first connection is being made".into())),
            State::Up(link) => Ok(Arc::clone(link)),
            State::Down(error) => Err(error.clone()),
        }
    }

    /// The callers get a connection. If wake-ups are wanted, it is subscribed before anybody can send on it.
    fn up(&self, link: Arc<Link>) {
        self.change(|state| {
            if self.is_wanted.load(Ordering::Acquire) {
                link.listen();
            }
            self.epoch.fetch_add(1, Ordering::AcqRel);
            *state = State::Up(link);
        });
    }

    fn down(&self, error: NodeError) {
        self.change(|state| *state = State::Down(error));
    }

    /// The connection for wake-ups stands, or does not any more.
    fn subscribed(&self, is_subscribed: bool) {
        self.is_subscribed.store(is_subscribed, Ordering::Release);
        if is_subscribed {
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
        self.environment.changed.notify_waiters();
    }

    /// Wants wake-ups, on the present connection and on all that follow.
    fn listen(&self) {
        // First: a connection that is made from here on sees it.
        let was_wanted = self.is_wanted.swap(true, Ordering::AcqRel);
        if let Ok(link) = self.link() {
            link.listen();
        }
        if !was_wanted {
            self.environment.changed.notify_waiters();
        }
    }

    /// Whether wake-ups arrive.
    fn is_listening(&self) -> bool {
        match &*self.state() {
            State::Up(link) if link.has_pushes() => link.is_listening(),
            State::Up(_) => self.is_subscribed.load(Ordering::Acquire),
            State::Starting | State::Down(_) => false,
        }
    }

    fn needs_subscriber(&self) -> bool {
        let is_wanted = self.is_wanted.load(Ordering::Acquire);
        is_wanted && matches!(&*self.state(), State::Up(link) if !link.has_pushes())
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
        self.environment.changed.notify_waiters();
    }

    fn state(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}
