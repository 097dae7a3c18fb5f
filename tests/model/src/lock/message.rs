//! What travels between clients and nodes, each as a code of four bits.

use super::node::{self, Verb};
use super::scenario::DETACHED;

/// A node command with the token of the connection it is sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
    /// Take a free lock.
    SetNx = 1,
    /// Take the lock, or wait for it.
    Acquire,
    /// Start the lease anew.
    Extend,
    /// Pass the lock on to a smaller token.
    Yield,
    /// Leave the queue, and pass the lock on.
    Release,
    /// Takes the place of token 0, in scenarios where that was detached.
    Adopt,
}

impl Command {
    const ALL: [Self; 6] = [Self::SetNx, Self::Acquire, Self::Extend, Self::Yield, Self::Release, Self::Adopt];

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.code() == code)
    }

    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    /// What the node does about it.
    pub(crate) const fn verb(self) -> Verb {
        match self {
            Self::SetNx => Verb::SetNx,
            Self::Acquire => Verb::Acquire,
            Self::Extend => Verb::Extend,
            Self::Yield => Verb::Yield,
            Self::Release => Verb::Release,
            Self::Adopt => Verb::Adopt { from: DETACHED as u8 },
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SetNx => "SETNX",
            Self::Acquire => "ACQUIRE",
            Self::Extend => "EXTEND",
            Self::Yield => "YIELD",
            Self::Release => "RELEASE",
            Self::Adopt => "ADOPT",
        }
    }
}

/// A reply or a push. The answer to `RELEASE` is not among them: a cut may happen before or after it, and both are
/// covered by sending the `RELEASE` again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reply {
    /// `OK` of `SETNX`, `EXTEND` and `ADOPT`, `GRANTED` without a smaller token in the queue.
    Lease = 1,
    /// The same, when the lease has ended before the reply arrives.
    LeaseOver,
    /// `GRANTED` while a smaller token waits.
    LeaseSmaller,
    /// The same, when the lease has ended before the reply arrives.
    LeaseSmallerOver,
    /// `QUEUED`, `NOT_OWNER` to an `EXTEND` or `ADOPT`, nil to a `SETNX`.
    No,
    /// `KEPT`, to a `YIELD`.
    Kept,
    /// `YIELDED` or `NOT_OWNER`, to a `YIELD`.
    Yielded,
    /// Push: the lock was handed over, as a claim.
    Granted,
    /// Push: a smaller token waits.
    Contended,
}

impl Reply {
    const ALL: [Self; 9] = [
        Self::Lease,
        Self::LeaseOver,
        Self::LeaseSmaller,
        Self::LeaseSmallerOver,
        Self::No,
        Self::Kept,
        Self::Yielded,
        Self::Granted,
        Self::Contended,
    ];

    /// What the client makes of the node's `reply` to `command`: one for all that it takes alike.
    pub(crate) const fn to(command: Command, reply: node::Reply) -> Option<Self> {
        match (command, reply) {
            (Command::Release, _) => None,
            (Command::Yield, node::Reply::Kept) => Some(Self::Kept),
            (Command::Yield, _) => Some(Self::Yielded),
            (_, node::Reply::Granted { smaller: true }) => Some(Self::LeaseSmaller),
            (_, node::Reply::Granted { .. } | node::Reply::Extended { .. }) => Some(Self::Lease),
            _ => Some(Self::No),
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reply| reply.code() == code)
    }

    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Lease => "a lease",
            Self::LeaseOver => "a lease that is over",
            Self::LeaseSmaller => "a lease while a smaller token waits",
            Self::LeaseSmallerOver => "a lease that is over while a smaller token waits",
            Self::No => "QUEUED or NOT_OWNER",
            Self::Kept => "KEPT",
            Self::Yielded => "YIELDED or NOT_OWNER to its YIELD",
            Self::Granted => "push granted",
            Self::Contended => "push contended",
        }
    }

    pub(crate) fn is_push(self) -> bool {
        matches!(self, Self::Granted | Self::Contended)
    }

    pub(crate) fn answers_yield(self) -> bool {
        matches!(self, Self::Kept | Self::Yielded)
    }

    /// What is left of a reply when the key has expired before it arrives.
    pub(crate) fn expired(self) -> Self {
        match self {
            Self::Lease => Self::LeaseOver,
            Self::LeaseSmaller => Self::LeaseSmallerOver,
            other => other,
        }
    }
}
