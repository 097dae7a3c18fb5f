//! What one client has of one server: the present connection, and the answers that it waits for.

use crate::error::NodeError;
use crate::node::abstention::Abstention;
use crate::node::server_facts::ServerFacts;
use crate::node::{Environment, Recipient, Status};
use crate::protocol::command::Proposal;
use crate::protocol::wakeup::channel;
use crate::time::clock::Instant;
use std::collections::VecDeque;

pub(super) struct Link {
    pub(super) client: usize,
    pub(super) server: usize,
    pub(super) environment: Environment,
    /// What the client knows of the server.
    pub(super) server_facts: ServerFacts,
    /// What the present connection proves.
    pub(super) abstention: Abstention,
    pub(super) state: Connection,
    pub(super) epoch: u64,
    /// Wake-ups are wanted on every connection.
    pub(super) is_wanted: bool,
    /// The present connection carries wake-ups.
    pub(super) is_listening: bool,
    /// Wake-ups come on the connection of the answers, and so never later than an answer that was given after them.
    pub(super) has_pushes: bool,
    /// The shortest time that a message takes, in milliseconds.
    pub(super) latency: u64,
    /// In the order of the sends.
    pub(super) unanswered: VecDeque<Asked>,
}

/// A command that is not answered.
pub(super) struct Asked {
    pub(super) recipient: Recipient,
    /// By the clock of the client.
    pub(super) sent: Instant,
    pub(super) proposal: Option<Proposal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    Starting,
    /// The number of the wire. It may be cut already, which the client does not know yet.
    Up(usize),
    Down,
}

impl Link {
    pub(super) fn status(&self) -> Status {
        match self.state {
            Connection::Starting => {
                Status::Starting(NodeError::Unreachable("the first connection is being made".into()))
            }
            Connection::Up(_) => Status::Up,
            Connection::Down => Status::Down(NodeError::Unreachable("the connection broke".into())),
        }
    }

    /// Nothing more comes from the present connection.
    pub(super) fn broken(&mut self) {
        self.state = Connection::Down;
        self.is_listening = false;
        self.server_facts.disconnected();
        for Asked { recipient, .. } in self.unanswered.drain(..) {
            recipient.answer(Err(NodeError::Disconnected));
        }
    }
}

/// A manager, as the network sees it.
pub(super) struct Client {
    /// As its tokens name it.
    pub(super) manager: String,
    pub(super) channel: String,
    /// Its process does nothing until then.
    pub(super) paused_until: Instant,
    /// Its tasks do nothing until then, because one of them blocks their thread; its connections go on.
    pub(super) blocked_until: Instant,
    pub(super) is_crashed: bool,
}

impl Client {
    pub(super) fn new(environment: &Environment, origin: Instant) -> Self {
        let manager = environment.manager.to_string();
        let channel = channel(&manager);
        Self { manager, channel, paused_until: origin, blocked_until: origin, is_crashed: false }
    }

    /// When its tasks go on.
    pub(super) fn tasks_rest_until(&self) -> Instant {
        self.paused_until.max(self.blocked_until)
    }

    pub(super) fn is_well(&self, now: Instant) -> bool {
        !self.is_crashed && self.tasks_rest_until() <= now
    }
}
