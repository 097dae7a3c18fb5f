//! Errors of single nodes.

use crate::error::refusal;
use crate::text::SingleLine;
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

/// Node that did not grant a lock or did not answer, with the error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeFailure {
    pub(crate) node: Box<str>,
    pub(crate) error: NodeError,
}

impl NodeFailure {
    /// Returns the address of the node: host and port, or the path of a socket.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns the error of the node.
    #[must_use]
    pub const fn error(&self) -> &NodeError {
        &self.error
    }
}

impl fmt::Display for NodeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", SingleLine(&self.node), self.error)
    }
}

/// Error reply of a node, which dereferences to its text, such as `OOM command not allowed when used memory > 'maxmemory'.`
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ErrorReply {
    text: Box<str>,
    /// A command of a running script raised the error: the commands before it were executed.
    is_raised: bool,
    /// Address of the server, if it is another one than that of the node.
    at: Option<Box<str>>,
    /// Step of a new connection that the server has refused, with its address and a remedy.
    step: Option<Box<FailedStep>>,
}

/// Step of a new connection that has failed.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FailedStep {
    /// Name and address.
    name: Box<str>,
    remedy: Box<str>,
}

impl ErrorReply {
    /// Error that was raised in the middle of a script.
    pub(crate) fn raised(text: impl Into<Box<str>>) -> Self {
        Self { is_raised: true, ..text.into().into() }
    }

    /// Adds the `name` of the step of a new connection that has failed, and the `remedy`.
    pub(crate) fn with_step(self, name: impl Into<Box<str>>, remedy: impl Into<Box<str>>) -> Self {
        Self { step: Some(Box::new(FailedStep { name: name.into(), remedy: remedy.into() })), ..self }
    }

    /// Returns `true` if the error names a remedy.
    pub(crate) const fn has_remedy(&self) -> bool {
        self.step.is_some()
    }

    /// Adds the address of the server that replied, unless the error already contains an address.
    pub(crate) fn at(self, address: &str) -> Self {
        Self { at: self.at.or_else(|| Some(address.into())), ..self }
    }
}

impl From<Box<str>> for ErrorReply {
    /// Error of a command that was not executed.
    fn from(text: Box<str>) -> Self {
        Self { text, is_raised: false, at: None, step: None }
    }
}

impl From<&str> for ErrorReply {
    fn from(text: &str) -> Self {
        Box::<str>::from(text).into()
    }
}

impl From<String> for ErrorReply {
    fn from(text: String) -> Self {
        text.into_boxed_str().into()
    }
}

impl Deref for ErrorReply {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ErrorReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.step.as_deref(), &self.at) {
            (Some(FailedStep { name, remedy }), _) => {
                // Some texts of servers end with a full stop.
                write!(f, "{}, so {}", SingleLine(self.text.trim_end_matches('.')), SingleLine(name))?;
                write!(f, " failed: {}", SingleLine(remedy))
            }
            (None, Some(at)) => write!(f, "{} (at {})", SingleLine(&*self.text), SingleLine(at)),
            (None, None) => SingleLine(&*self.text).fmt(f),
        }
    }
}

impl fmt::Debug for ErrorReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

/// Error of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeError {
    /// The node is not connected. A new connection is tried in the background.
    Unreachable(Box<str>),
    /// The TLS handshake failed: the certificate is not trusted, or one side does not speak TLS.
    Tls(Box<str>),
    /// The connection broke before the reply.
    Disconnected,
    /// The node had not replied when the other nodes decided the outcome.
    NoReply,
    /// The node did not reply within the node timeout.
    TimedOut(Duration),
    /// The node has not replied to an earlier command for this time. It receives no further commands until it replies.
    Stalled(Duration),
    /// The node replied with an error.
    Refused(ErrorReply),
    /// The reply does not fit the command. The command may have been executed.
    UnexpectedReply(Box<str>),
    /// The node granted the lock without a fencing number. The key `redlock:f:{..}` below the namespace, which stores the largest
    /// number, holds other data, or the user may not use it.
    FencingUnavailable,
    /// The key holds data that is not a lock: a value without an expiry, or a value that is not a string. Use a
    /// [`namespace`](crate::LockManagerBuilder::namespace) to separate locks and data.
    HoldsData,
    /// Another owner holds the key at this node.
    Held,
    /// The reply came too late: the confirmed lease had almost ended.
    TooLate,
    /// The node may have lost locks, because it restarted, was promoted or got other data recently. It does not vote for this time.
    /// See [`AfterRestart`](crate::tuning::AfterRestart).
    RecentlyRestarted(Duration),
    /// Too few replicas have confirmed the lock; see
    /// [`confirm_replicas`](crate::NodeConfig::confirm_replicas).
    NotReplicated {
        /// Number of replicas that confirmed the lock in time.
        acked: u32,
        /// Number of replicas that must confirm it.
        wanted: u32,
    },
    /// The node is a replica: it grants no locks, or loses them.
    Replica,
    /// The node is the same server as the node with this address. Its vote must not count twice.
    SameServer(Box<str>),
    /// The node cannot be used for locks with its present settings. The text names the reason and the remedy.
    Unsupported(Box<str>),
}

impl NodeError {
    /// Returns `true` if the error may pass by itself, so that a retry can help.
    ///
    /// Other errors need a change of the server, its user, or the settings of the manager. An error reply is transient if the server is
    /// busy, full, starting or failing over, or cannot replicate or save. All other error replies count as permanent, so that a mistake
    /// does not look like an outage.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused(answer) => refusal::is_transient(answer),
            Self::Tls(_)
            | Self::HoldsData
            | Self::FencingUnavailable
            | Self::Replica
            | Self::SameServer(_)
            | Self::Unsupported(_) => false,
            _ => true,
        }
    }

    /// Returns `true` if the command may have been executed.
    pub(crate) const fn may_have_been_executed(&self) -> bool {
        matches!(self, Self::Disconnected | Self::TimedOut(_) | Self::UnexpectedReply(_) | Self::NotReplicated { .. })
    }

    /// Returns `true` if the command has failed halfway: a part of it was executed, and the rest will not be.
    pub(crate) const fn is_raised(&self) -> bool {
        matches!(self, Self::Refused(reply) if reply.is_raised)
    }

    /// Returns `true` if the round trip may exceed the node timeout. A node that takes a second is not slow but unreachable.
    pub(crate) fn is_slow(&self) -> bool {
        match self {
            Self::TimedOut(after) => *after < Duration::from_secs(1),
            error => *error == Self::TooLate,
        }
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(reason) => write!(f, "not connected: {}", SingleLine(reason)),
            Self::Tls(reason) => write!(f, "no TLS: {}", SingleLine(reason)),
            Self::Disconnected => f.write_str("the connection broke before the answer"),
            Self::NoReply => f.write_str("no answer yet when the others had decided it"),
            Self::TimedOut(after) => write!(f, "no answer within {after:?}"),
            Self::Stalled(since) => write!(f, "has not answered for {since:.1?}"),
            Self::Refused(answer) => write!(f, "answered {answer}"),
            Self::UnexpectedReply(answer) => {
                write!(f, "answered {}, which is not a valid reply to the command", SingleLine(answer))
            },
            Self::FencingUnavailable => f.write_str(
                "granted the lock without a fencing number: a key `redlock:f:*` below the namespace holds something else, \
                 or the user lacks `+zadd +zscore` for it",
            ),
            Self::HoldsData => f.write_str("the key holds data that is not a lock"),
            Self::Held => f.write_str("held by another owner"),
            Self::TooLate => f.write_str("answered too late for the lease to be of use"),
            Self::RecentlyRestarted(left) => {
                write!(
                    f,
                    "was restarted or replaced recently, may have lost locks, and does not vote for another \
                     {left:.1?} (see max_ttl)"
                )
            }
            Self::NotReplicated { acked, wanted } => {
                write!(f, "{acked} of the {wanted} replicas that confirm_replicas asks for have confirmed the lock in time")
            }
            Self::Replica => f.write_str("is a replica, but each node must be a separate master"),
            Self::SameServer(other) => {
                write!(f, "is the same server as {}, which already has a vote", SingleLine(other))
            },
            Self::Unsupported(reason) => SingleLine(reason).fmt(f),
        }
    }
}

impl std::error::Error for NodeError {}
