//! What a node is asked, and what it answers.

use crate::error::NodeError;
use crate::key::LockKey;
use crate::token::OwnerToken;
use std::sync::Arc;
use std::time::Duration;

/// One atomic command.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) verb: Verb,
    /// Shared by all commands of one acquisition, to all nodes.
    pub(crate) subject: Arc<Subject>,
}

/// What a command is about: a key, and the token that wants it or has it.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) key: LockKey,
    pub(crate) token: OwnerToken,
}

impl Command {
    /// The name of the key in Redis.
    pub(crate) fn key(&self) -> &str {
        self.subject.key.name()
    }

    pub(crate) fn token(&self) -> &str {
        self.subject.token.as_str()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// `SET L token NX PX ttl`: take a free lock. The plain command, so that every Redlock client is excluded.
    SetNx { ttl: Duration },
    /// Start the lease anew if the token owns the lock; never creates it.
    Extend { ttl: Duration },
    /// Give the lock back if the token owns it.
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// `SetNx`: the lock is ours.
    Granted,
    /// `SetNx`: somebody has it.
    Held,
    /// `Extend`: the lease starts anew.
    Extended,
    /// `Release`: given back.
    Released,
    /// `Extend`, `Release`: the token does not own the lock.
    NotOwner,
}

pub(crate) type Answer = Result<Reply, NodeError>;
