//! State that the nodes of one manager share: its identity, and the receivers of events.

use crate::lock::owner_token::ManagerId;
#[cfg(any(test, fuzzing))]
use crate::node::abstention::Caution;
use crate::node::server_register::ServerRegister;
use crate::protocol::command::Deliver;
#[cfg(any(test, fuzzing))]
use crate::protocol::{quorum::Quorum, rules::Rules};
#[cfg(any(test, fuzzing))]
use crate::request::AfterRestart;
#[cfg(any(test, fuzzing))]
use crate::time::clock::Clock;
use crate::time::token_clock::TokenClock;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Handles a new connection. Called in the task of the connection, so it must neither block nor panic.
pub(crate) type Connected = Arc<dyn Fn() + Send + Sync>;

/// State of the manager that a node needs.
#[derive(Clone)]
pub(crate) struct Environment {
    pub(crate) manager: ManagerId,
    /// Prefix of the keys, channels and fencing registers of the manager: empty, or the namespace with its separator.
    pub(crate) namespace: Arc<str>,
    /// Name of the process in the server's list of clients.
    pub(crate) label: Arc<str>,
    /// Observes the times of the tokens in replies.
    pub(crate) token_clock: Arc<TokenClock>,
    /// Notified at every change of any node of the manager.
    pub(crate) changed: Arc<Notify>,
    /// Receives the wake-ups of one node, so that each node has a separate environment.
    pub(crate) deliver: Deliver,
    /// Called for each new connection to the node, as soon as it is usable.
    pub(crate) connected: Connected,
    /// Facts about the servers of the nodes.
    pub(crate) servers: Arc<ServerRegister>,
    /// The replicas that must confirm every lease of one node, if there are any.
    pub(crate) replicas: Option<Replicas>,
}

/// Replicas that must confirm the writes of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replicas {
    /// Number of these replicas.
    pub(crate) wanted: NonZeroU32,
    /// Time limit of the confirmation.
    pub(crate) patience: Duration,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("manager", &self.manager).finish_non_exhaustive()
    }
}

#[cfg(any(test, fuzzing))]
impl Environment {
    /// Returns the environment of a manager with one trusted node, without receivers of events.
    pub(crate) fn for_single_node(manager: ManagerId, clock: Clock) -> Self {
        let caution = Caution { after_restart: AfterRestart::Trust, rules: Rules::default() };
        Self {
            manager,
            namespace: Arc::from(""),
            label: Arc::from(""),
            token_clock: Arc::new(TokenClock::new(clock)),
            changed: Arc::default(),
            deliver: Arc::new(|_| {}),
            connected: Arc::new(|| {}),
            servers: Arc::new(ServerRegister::new(clock, caution, Quorum::of(1, 0), 0.01)),
            replicas: None,
        }
    }
}
