//! State of a client for one server: the present connection, and the pending answers.

use crate::error::NodeError;
use crate::node::abstention::Abstention;
use crate::node::server_facts::ServerFacts;
use crate::node::{Environment, Recipient, Status};
use crate::protocol::command::Proposal;
use crate::protocol::wakeup::channel;
use crate::time::clock::Instant;
use std::collections::VecDeque;

/// Link of one client to one server, over all connections between them.
pub(super) struct Link {
    pub(super) client: usize,
    pub(super) server: usize,
    pub(super) environment: Environment,
    /// Facts that the client knows about the server.
    pub(super) server_facts: ServerFacts,
    /// Facts that the present connection proves.
    pub(super) abstention: Abstention,
    pub(super) state: Connection,
    pub(super) epoch: u64,
    /// `true` if every connection must subscribe to wake-ups.
    pub(super) is_wanted: bool,
    /// `true` if the present connection is subscribed to wake-ups.
    pub(super) is_listening: bool,
    /// `true` if wake-ups arrive on the connection of the answers. A wake-up then never arrives after a later answer.
    pub(super) has_pushes: bool,
    /// Minimum delay of a message, in milliseconds.
    pub(super) latency: u64,
    /// Pending commands, in the order of sending.
    pub(super) unanswered: VecDeque<Asked>,
}

/// Command without an answer so far.
pub(super) struct Asked {
    pub(super) recipient: Recipient,
    /// Time of sending by the clock of the client.
    pub(super) sent: Instant,
    pub(super) proposal: Option<Proposal>,
}

/// State of the present connection of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    Starting,
    /// Number of the wire, which may already be cut without the client's knowledge.
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

    /// Ends the present connection. Pending commands fail.
    pub(super) fn broken(&mut self) {
        self.state = Connection::Down;
        self.is_listening = false;
        self.server_facts.disconnected();
        for Asked { recipient, .. } in self.unanswered.drain(..) {
            recipient.answer(Err(NodeError::Disconnected));
        }
    }
}

/// Manager, as seen by the network.
pub(super) struct Client {
    /// Name of the manager in its tokens.
    pub(super) manager: String,
    pub(super) channel: String,
    /// Time until which the process does nothing.
    pub(super) paused_until: Instant,
    /// Time until which its tasks do nothing, because one of them blocks their thread. Its connections continue.
    pub(super) blocked_until: Instant,
    pub(super) is_crashed: bool,
}

impl Client {
    pub(super) fn new(environment: &Environment, origin: Instant) -> Self {
        let manager = environment.manager.to_string();
        let channel = channel(&manager);
        Self { manager, channel, paused_until: origin, blocked_until: origin, is_crashed: false }
    }

    /// Returns the time at which its tasks continue.
    pub(super) fn tasks_rest_until(&self) -> Instant {
        self.paused_until.max(self.blocked_until)
    }

    /// Returns `true` if the process runs now.
    pub(super) fn is_well(&self, now: Instant) -> bool {
        !self.is_crashed && self.tasks_rest_until() <= now
    }
}
