//! Messages between a manager and a server of a test.

use crate::error::NodeError;
use crate::node::Recipient;
use crate::protocol::command::{Command, Proposal, Reply, Wakeup};
use crate::time::clock::Instant;
use crate::time::token_clock::TokenTime;
use std::time::Duration;
use tokio::time::Instant as Moment;

/// Message of a manager.
pub(in crate::testing) enum Request {
    Command { command: Command, recipient: Recipient, sent: Instant },
    Publish(Wakeup),
}

/// Message to a manager.
pub(in crate::testing) enum Parcel {
    Answer { recipient: Recipient, sent: Instant, outcome: Result<Executed, NodeError> },
    Wakeup(Wakeup),
}

/// Result of an executed command.
pub(in crate::testing) struct Executed {
    pub(in crate::testing) reply: Reply,
    pub(in crate::testing) seen: Option<TokenTime>,
    /// Wall clock of the server at the execution.
    pub(in crate::testing) time: Duration,
    pub(in crate::testing) proposal: Option<Proposal>,
}

/// Next step of the courier of a connection.
pub(in crate::testing) enum Step {
    Hand(Parcel),
    /// Nothing is due before this time, unless a new message arrives. `None`: nothing is pending.
    Wait(Option<Moment>),
    /// The manager was dropped.
    End,
}

impl Request {
    pub(super) fn recipient(self) -> Option<Recipient> {
        match self {
            Self::Command { recipient, .. } => Some(recipient),
            Self::Publish(_) => None,
        }
    }

    pub(super) fn failed(self, error: NodeError) -> Option<Parcel> {
        match self {
            Self::Command { recipient, sent, .. } => Some(Parcel::Answer { recipient, sent, outcome: Err(error) }),
            Self::Publish(_) => None,
        }
    }
}

impl Parcel {
    pub(super) fn recipient(self) -> Option<Recipient> {
        match self {
            Self::Answer { recipient, .. } => Some(recipient),
            Self::Wakeup(_) => None,
        }
    }
}
