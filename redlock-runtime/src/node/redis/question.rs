//! The requests of a connection, and the recipients of their replies.

use super::cluster::address::MemberAddress;
use crate::error::NodeError;
use crate::node::pending::Recipient;
use crate::protocol::command::{Answer, Command, Reply};
use crate::time::clock::Instant;
use redis::{Cmd, Value};
use tokio::sync::oneshot;

/// A request to send.
pub(super) enum Outgoing {
    /// Encoded in the wire format.
    Worded(Wire, ReplyKind),
    /// An extension that is combined with adjacent ones: see [`extensions`](super::extensions).
    Extension(Question),
}

impl Outgoing {
    /// Returns the kind of request that the reply belongs to.
    pub(super) fn asked(self) -> ReplyKind {
        match self {
            Self::Worded(_, asked) => asked,
            Self::Extension(question) => ReplyKind::Question(question),
        }
    }
}

/// One command of the server, or several adjacent ones with one common reply.
pub(super) struct Wire {
    pub(super) first: Cmd,
    pub(super) rest: Vec<Cmd>,
}

impl From<Cmd> for Wire {
    fn from(first: Cmd) -> Self {
        Self { first, rest: Vec::new() }
    }
}

/// The kind of request that a reply belongs to.
pub(super) enum ReplyKind {
    Question(Question),
    /// Subscription to the channel of the manager.
    Subscription,
    /// Asks a member of a cluster to execute the next command although the slot is still moving there.
    Asking,
    /// Query for the server's clock, with the time at which it was sent.
    Time(Instant),
    /// Query about the server, and not about a lock.
    Probe(oneshot::Sender<Result<Value, NodeError>>),
}

/// A command, and the recipient of its reply.
pub(super) struct Question {
    pub(super) command: Command,
    /// Time at which the command was queued, if it matters.
    pub(super) sent: Option<Instant>,
    pub(super) recipient: Recipient,
    /// `true` if the command was sent before, when the server had lost its script.
    pub(super) is_repeated: bool,
    /// `true` if the command comes behind commands that were sent after it. An extension must then make no lease shorter (`lua/late.lua`).
    pub(super) is_late: bool,
    pub(super) form: Form,
    /// The member that has the slot and reports that the key may have left: the command then follows an `ASKING`.
    pub(super) asked_by: Option<Box<MemberAddress>>,
    /// Number of redirections by members of a cluster.
    pub(super) redirects: u8,
    /// The reply proves nothing about a lease before this time: the slot was at a member that may have forgotten leases.
    pub(super) abstains_until: Option<Instant>,
    /// Result of the confirmation by replicas, if it is required.
    pub(super) confirmation: Option<Confirmation>,
}

/// `Ok` if enough replicas have the write. The error says how many do, or why this is unknown.
pub(super) type Confirmation = Result<(), NodeError>;

/// The keys of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The lock, its queue and, for a fenced one, its register.
    Whole,
    /// The lock, and the lock again in place of its queue: for a slot of a cluster that is moving (`cluster::redirection`).
    Alone,
    /// The lock and its queue, for a `SET` that otherwise names only the lock: the server refuses it if the user may not use the queue. See
    /// [`ForbiddenQueue`](crate::node::forbidden_queue::ForbiddenQueue).
    Checked,
    /// The locks without their queues: for an extension or a release that was refused because of another key.
    Own,
    /// The queue, which the token leaves. The release itself was executed, and had this reply. Boxed: it is rare, and many questions may
    /// wait for a silent server.
    Queue(Box<Reply>),
}

impl ReplyKind {
    /// Fails the request because no reply will come. Returns `true` if it is a command about a lock.
    pub(super) fn disconnected(self) -> bool {
        let Self::Question(question) = self else { return false };
        question.answer(Err(NodeError::Disconnected));
        true
    }
}

impl Question {
    pub(super) const fn new(command: Command, sent: Option<Instant>, recipient: Recipient) -> Self {
        Self {
            command,
            sent,
            recipient,
            is_repeated: false,
            is_late: false,
            form: Form::Whole,
            asked_by: None,
            redirects: 0,
            abstains_until: None,
            confirmation: None,
        }
    }

    pub(super) fn answer(self, answer: Answer) {
        self.recipient.answer(answer);
    }
}
