//! What waits to be sent on a connection, and who gets the answer.

use super::cluster::address::MemberAddress;
use crate::error::NodeError;
use crate::node::pending::Recipient;
use crate::protocol::command::{Answer, Command, Reply};
use crate::time::clock::Instant;
use redis::{Cmd, Value};
use tokio::sync::oneshot;

/// Something to send.
pub(super) enum Outgoing {
    /// In its wire format.
    Worded(Wire, Asked),
    /// An extension that goes out as one command with those beside it: see [`extensions`](super::extensions).
    Extension(Question),
}

impl Outgoing {
    /// What the answer will be the answer to.
    pub(super) fn asked(self) -> Asked {
        match self {
            Self::Worded(_, asked) => asked,
            Self::Extension(question) => Asked::Question(question),
        }
    }
}

/// One command of the server, or several that follow each other and have one answer together.
pub(super) struct Wire {
    pub(super) first: Cmd,
    pub(super) rest: Vec<Cmd>,
}

impl From<Cmd> for Wire {
    fn from(first: Cmd) -> Self {
        Self { first, rest: Vec::new() }
    }
}

/// What an answer will be the answer to.
pub(super) enum Asked {
    Question(Question),
    /// To the channel of the manager.
    Subscription,
    /// Asks a member of a cluster to execute the next command although the slot is still on its way there.
    Asking,
    /// What the server's clock shows; when that was asked.
    Time(Instant),
    /// About the server, and not about a lock.
    Probe(oneshot::Sender<Result<Value, NodeError>>),
}

/// A command, and where its answer goes.
pub(super) struct Question {
    pub(super) command: Command,
    /// When it was put into the outbox, if that matters.
    pub(super) sent: Option<Instant>,
    pub(super) recipient: Recipient,
    /// Whether it was sent before, when the server had lost its script.
    pub(super) is_repeated: bool,
    /// Whether it stands behind commands that were sent after it: an extension must not make a lease shorter there (`lua/late.lua`).
    pub(super) is_late: bool,
    pub(super) form: Form,
    /// The member that has the slot and says that the key may have left: then it stands behind an `ASKING`.
    pub(super) asked_by: Option<Box<MemberAddress>>,
    /// How often a member of a cluster has sent it elsewhere.
    pub(super) redirects: u8,
    /// Its answer proves nothing of a lease before then: the slot was at a member that may have forgotten leases.
    pub(super) abstains_until: Option<Instant>,
    /// Whether the replicas have what it has written, where they have to.
    pub(super) confirmation: Option<Confirmation>,
}

/// Whether enough replicas have what was written; otherwise why that is not known, or how many have.
pub(super) type Confirmation = Result<(), NodeError>;

/// Which keys a command is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The lock, its queue and, for a fenced one, its register.
    Whole,
    /// The lock, and again the lock in place of its queue: for a slot of a cluster that is on its way (`cluster::redirection`).
    Alone,
    /// The queue, which the token leaves. The release itself is executed, and has had this reply. Boxed: it is rare, and many
    /// questions may wait for a server that is silent.
    Queue(Box<Reply>),
}

impl Asked {
    /// There will be no answer: whoever waits for one is told. Whether it is a command about a lock.
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
