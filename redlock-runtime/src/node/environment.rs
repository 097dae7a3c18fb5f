//! What the nodes of one manager share: who it is, and what it wants to be told.

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

/// Takes note of a new connection. Called in the task of the connection, so it must neither block nor panic.
pub(crate) type Connected = Arc<dyn Fn() + Send + Sync>;

/// What a node knows of the manager it belongs to.
#[derive(Clone)]
pub(crate) struct Environment {
    pub(crate) manager: ManagerId,
    /// What the process is called, for whoever looks at the clients of a server.
    pub(crate) label: Arc<str>,
    /// What the names of all locks of the manager begin with.
    pub(crate) namespace: Arc<str>,
    /// Takes in the times of the tokens that answers mention.
    pub(crate) token_clock: Arc<TokenClock>,
    /// Notified at every change of any node of the manager.
    pub(crate) changed: Arc<Notify>,
    /// Takes in the wake-ups of one node, so that each node has an environment of its own.
    pub(crate) deliver: Deliver,
    /// Called when there is a new connection to the node, as soon as it can be asked.
    pub(crate) connected: Connected,
    /// What the nodes find out about their servers.
    pub(crate) servers: Arc<ServerRegister>,
    /// The replicas that have to confirm every lease of one node, if any have to.
    pub(crate) replicas: Option<Replicas>,
}

/// Replicas that have to have what a lease rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replicas {
    /// How many of them.
    pub(crate) wanted: NonZeroU32,
    /// How long they have for it.
    pub(crate) patience: Duration,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("manager", &self.manager).finish_non_exhaustive()
    }
}

#[cfg(any(test, fuzzing))]
impl Environment {
    /// That of a manager which has one node, trusts it, and wants to be told nothing.
    pub(crate) fn of_lone_node(manager: ManagerId, clock: Clock) -> Self {
        let caution = Caution { after_restart: AfterRestart::Trust, rules: Rules::default() };
        Self {
            manager,
            label: Arc::from(""),
            namespace: Arc::from(""),
            token_clock: Arc::new(TokenClock::new(clock)),
            changed: Arc::default(),
            deliver: Arc::new(|_| {}),
            connected: Arc::new(|| {}),
            servers: Arc::new(ServerRegister::new(clock, caution, Quorum::of(1, 0), 0.01)),
            replicas: None,
        }
    }
}
