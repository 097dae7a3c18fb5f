//! One independent voter: a Redis server, or the embedded memory node. One command set, one reply set.

mod abstention;
#[cfg(test)]
mod differential;
pub(crate) mod memory;
mod pending;
pub(crate) mod redis;
pub(crate) mod report;
mod server;
mod server_clock;
mod servers;

pub(crate) use self::abstention::Abstention;
pub(crate) use self::pending::{Pending, Recipient};
pub(crate) use self::server::Server;
pub(crate) use self::server_clock::ServerClock;
pub(crate) use self::servers::{Identity, Servers};
use crate::error::NodeError;
use crate::lock::owner_token::ManagerId;
use crate::node::memory::MemoryNode;
use crate::node::redis::RedisNode;
use crate::node::report::NodeReport;
use crate::protocol::command::{Command, Deliver};
#[cfg(test)]
use crate::simulation::SimulatedNode;
use crate::time::token_clock::TokenClock;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A node, whatever it is made of.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Redis(Arc<RedisNode>),
    Memory(Arc<MemoryNode>),
    #[cfg(test)]
    Simulated(Arc<SimulatedNode>),
}

/// Whether a node can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The first connection is being made.
    Starting,
    Up,
    Down(NodeError),
}

/// What a node knows of the manager it belongs to.
#[derive(Clone)]
pub(crate) struct Environment {
    pub(crate) manager: ManagerId,
    /// Takes in the times of the tokens that answers mention.
    pub(crate) token_clock: Arc<TokenClock>,
    /// Notified at every change of any node of the manager.
    pub(crate) changed: Arc<Notify>,
    pub(crate) deliver: Deliver,
    pub(crate) servers: Arc<Servers>,
}

impl Node {
    /// Puts `command` into the order of the node's connection before it returns; the answer comes later, if at all.
    pub(crate) fn send(&self, command: Command) -> Pending {
        if let Self::Memory(node) = self {
            return Pending::answered(Ok(node.execute(&command)));
        }
        let (recipient, pending) = Recipient::task();
        self.send_for(command, recipient);
        pending
    }

    /// The same, for an answer that `recipient` gets.
    pub(crate) fn send_for(&self, command: Command, recipient: Recipient) {
        match self {
            Self::Redis(node) => node.send(command, recipient),
            Self::Memory(node) => recipient.answer(Ok(node.execute(&command))),
            #[cfg(test)]
            Self::Simulated(node) => node.send(command, recipient),
        }
    }

    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Redis(node) => node.status(),
            Self::Memory(_) => Status::Up,
            #[cfg(test)]
            Self::Simulated(node) => node.status(),
        }
    }

    /// Waits until the node can be asked.
    pub(crate) async fn up(&self) {
        match self {
            Self::Redis(node) => node.up().await,
            Self::Memory(_) => {}
            #[cfg(test)]
            Self::Simulated(node) => node.up().await,
        }
    }

    /// The address, without user and password.
    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Redis(node) => node.label(),
            Self::Memory(_) => "memory",
            #[cfg(test)]
            Self::Simulated(node) => node.label(),
        }
    }

    /// The number of the connection: grows with every new one, also with one that only carries wake-ups.
    ///
    /// Wake-ups of the time between two connections are lost: who waits for one must ask again when the number is
    /// another.
    pub(crate) fn epoch(&self) -> u64 {
        match self {
            Self::Redis(node) => node.epoch(),
            Self::Memory(_) => 0,
            #[cfg(test)]
            Self::Simulated(node) => node.epoch(),
        }
    }

    /// Opens the channel for wake-ups, once and for all connections to come: before any command that is sent later.
    pub(crate) fn listen(&self) {
        match self {
            Self::Redis(node) => node.listen(),
            Self::Memory(_) => {}
            #[cfg(test)]
            Self::Simulated(node) => node.listen(),
        }
    }

    /// What the node is like, found out in `patience` at the most.
    pub(crate) async fn report(&self, patience: Duration) -> NodeReport {
        match self {
            Self::Redis(node) => node.report(patience).await,
            Self::Memory(_) => NodeReport::in_memory(self.label()),
            #[cfg(test)]
            Self::Simulated(_) => NodeReport::unknown(self.label()),
        }
    }

    /// Whether wake-ups arrive.
    pub(crate) fn is_listening(&self) -> bool {
        match self {
            Self::Redis(node) => node.is_listening(),
            // It has none: all who wait for it wait in the line of this process.
            Self::Memory(_) => true,
            #[cfg(test)]
            Self::Simulated(node) => node.is_listening(),
        }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("manager", &self.manager).finish_non_exhaustive()
    }
}
