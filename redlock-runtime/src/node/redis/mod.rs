//! A Redis server as a node: one multiplexed connection, kept up by a supervisor.

mod connect;
mod courier;
pub(crate) mod endpoint;
mod link;
mod script;
mod supervisor;
#[cfg(feature = "tls")]
mod tls;

use self::endpoint::Endpoint;
use self::link::Link;
use self::supervisor::Supervised;
use crate::changes;
use crate::error::NodeError;
use crate::node::{Command, Pending, Status};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

pub(crate) struct RedisNode {
    label: Box<str>,
    shared: Arc<Shared>,
    /// Ends the supervisor, and with it the connection, when the node is dropped.
    supervisor: AbortHandle,
}

/// What the supervisor writes and the callers read.
struct Shared {
    state: RwLock<State>,
    /// Notified at every change of any node of the manager.
    changed: Arc<Notify>,
}

enum State {
    Starting,
    Up(Arc<Link>),
    Down(NodeError),
}

impl RedisNode {
    /// Starts to connect to `endpoint` on `runtime`.
    pub(crate) fn start(endpoint: Endpoint, client_name: String, changed: Arc<Notify>, runtime: &Handle) -> Arc<Self> {
        let shared = Arc::new(Shared { state: RwLock::new(State::Starting), changed });
        let label = endpoint.label().into();
        let task = supervisor::supervise(endpoint, client_name, Supervised(Arc::clone(&shared)));
        let supervisor = runtime.spawn(task).abort_handle();
        Arc::new(Self { label, shared, supervisor })
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    pub(crate) fn status(&self) -> Status {
        match &*self.shared.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Starting => Status::Starting,
            State::Up(_) => Status::Up,
            State::Down(error) => Status::Down(error.clone()),
        }
    }

    /// Waits for a connection.
    pub(crate) async fn up(&self) {
        changes::until(&self.shared.changed, || self.status() == Status::Up).await;
    }

    pub(crate) fn send(&self, command: Command) -> Pending {
        match self.shared.link() {
            Ok(link) => link.send(command),
            Err(error) => Pending::answered(Err(error)),
        }
    }
}

impl Drop for RedisNode {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

impl fmt::Debug for RedisNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisNode").field("label", &self.label).field("status", &self.status()).finish_non_exhaustive()
    }
}

impl Shared {
    fn link(&self) -> Result<Arc<Link>, NodeError> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Starting => Err(NodeError::Unreachable("the first connection is being made".into())),
            State::Up(link) => Ok(Arc::clone(link)),
            State::Down(error) => Err(error.clone()),
        }
    }

    fn set(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed.notify_waiters();
    }
}
