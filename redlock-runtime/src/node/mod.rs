//! One independent voter: a Redis server, or the embedded memory node. One command set, one reply set.

mod command;
#[cfg(test)]
mod differential;
pub(crate) mod memory;
mod pending;
pub(crate) mod redis;

pub(crate) use self::command::{Answer, Command, Reply, Subject, Verb};
pub(crate) use self::pending::Pending;
use crate::error::NodeError;
use crate::node::memory::MemoryNode;
use crate::node::redis::RedisNode;
use std::sync::Arc;

/// A node, whatever it is made of.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Redis(Arc<RedisNode>),
    Memory(Arc<MemoryNode>),
}

/// Whether a node can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The first connection is being made.
    Starting,
    Up,
    Down(NodeError),
}

impl Node {
    /// Puts `command` into the order of the node's connection before it returns; the answer comes later, if at all.
    pub(crate) fn send(&self, command: Command) -> Pending {
        match self {
            Self::Redis(node) => node.send(command),
            Self::Memory(node) => Pending::answered(Ok(node.execute(&command))),
        }
    }

    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Redis(node) => node.status(),
            Self::Memory(_) => Status::Up,
        }
    }

    /// Waits until the node can be asked.
    pub(crate) async fn up(&self) {
        if let Self::Redis(node) = self {
            node.up().await;
        }
    }

    /// The address, without user and password.
    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Redis(node) => node.label(),
            Self::Memory(_) => "memory",
        }
    }
}
