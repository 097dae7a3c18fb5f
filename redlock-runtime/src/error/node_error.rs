//! Why one node did not agree.

use crate::error::refusal;
use crate::text::SingleLine;
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

/// A node that did not agree, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFailure {
    pub(crate) node: Box<str>,
    pub(crate) error: NodeError,
}

impl NodeFailure {
    /// The address of the node: host and port, or the path of a socket.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Why it did not agree.
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
}

impl ErrorReply {
    /// Error that was raised in the middle of a script.
    pub(crate) fn raised(text: impl Into<Box<str>>) -> Self {
        Self { text: text.into(), is_raised: true, at: None }
    }

    /// The same error with the address of the server that has replied, unless it has one already.
    pub(crate) fn at(self, address: &str) -> Self {
        Self { at: self.at.or_else(|| Some(address.into())), ..self }
    }
}

impl From<Box<str>> for ErrorReply {
    /// Error of a command that was not executed.
    fn from(text: Box<str>) -> Self {
        Self { text, is_raised: false, at: None }
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
        SingleLine(&*self.text).fmt(f)?;
        self.at.as_ref().map_or(Ok(()), |at| write!(f, " (at {})", SingleLine(at)))
    }
}

impl fmt::Debug for ErrorReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

/// Why one node did not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeError {
    /// There is no connection; a new one is tried in the background.
    Unreachable(Box<str>),
    /// TLS does not come about: the certificate is not trusted, or one of the two sides does not speak it.
    Tls(Box<str>),
    /// The connection broke before the answer came.
    Disconnected,
    /// No answer by the time the others had decided the outcome.
    Unanswered,
    /// No answer within the node timeout.
    TimedOut(Duration),
    /// The node has not answered an earlier command for this long; nothing more is asked of it until it does.
    Stalled(Duration),
    /// The node answered with an error.
    Refused(ErrorReply),
    /// The node answered with something that is no answer to the command, which may or may not have been executed.
    Unintelligible(Box<str>),
    /// The node granted the lock and no fencing number: a key `redlock:f:{..}` below the namespace, which stores the largest one,
    /// holds something else, or the user may not use it.
    Unnumbered,
    /// The key holds data on this node and is no lock of anybody: a value without an expiry, or of another type than text.
    /// A [`namespace`](crate::LockManagerBuilder::namespace) keeps locks and data apart.
    HoldsData,
    /// Another owner holds the key on this node.
    Held,
    /// The answer came when the lease that it confirms was as good as over.
    TooLate,
    /// The node may have forgotten locks, because it was restarted, promoted or given other data lately, and does not count
    /// for this much longer; see [`AfterRestart`](crate::AfterRestart) and
    /// [`max_ttl`](crate::LockManagerBuilder::max_ttl).
    Abstains(Duration),
    /// Too few replicas of the node have what the lease rests on; see
    /// [`confirm_replicas`](crate::NodeConfig::confirm_replicas).
    NotReplicated {
        /// How many had it in time.
        acked: u32,
        /// How many were asked for.
        wanted: u32,
    },
    /// The node is a replica of another server: it takes no locks, or loses them.
    Replica,
    /// The node is the same server as another one, whose address this is: its vote must not count twice.
    SameServer(Box<str>),
    /// Locks cannot work at this node as it is set up. The text says why, and what to do about it.
    Unfit(Box<str>),
}

impl NodeError {
    /// Whether it may pass by itself: waiting, or another try, may help. What does not pass is for somebody who mends the
    /// server, its user, or the settings of the manager.
    ///
    /// An answer with an error passes if it is one of a server that is busy, full or on its way back. Any other is taken
    /// for one that stays, so that a mistake never looks like an outage.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused(answer) => refusal::is_transient(answer),
            Self::Tls(_)
            | Self::HoldsData
            | Self::Unnumbered
            | Self::Replica
            | Self::SameServer(_)
            | Self::Unfit(_) => false,
            _ => true,
        }
    }

    /// Whether the command may have been executed all the same.
    pub(crate) const fn leaves_open_what_was_done(&self) -> bool {
        matches!(self, Self::Disconnected | Self::TimedOut(_) | Self::Unintelligible(_) | Self::NotReplicated { .. })
    }

    /// Returns `true` if the command has failed halfway: a part of it was executed, and the rest will not be.
    pub(crate) const fn is_raised(&self) -> bool {
        matches!(self, Self::Refused(reply) if reply.is_raised)
    }

    /// Whether the node may just be further away than its time for an answer. One that takes a second is not.
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
            Self::Unanswered => f.write_str("no answer yet when the others had decided it"),
            Self::TimedOut(after) => write!(f, "no answer within {after:?}"),
            Self::Stalled(since) => write!(f, "has not answered for {since:.1?}"),
            Self::Refused(answer) => write!(f, "answered {answer}"),
            Self::Unintelligible(answer) => {
                write!(f, "answered {}, which is no answer to the command", SingleLine(answer))
            },
            Self::Unnumbered => f.write_str(
                "granted the lock without a fencing number: a key `redlock:f:*` below the namespace holds something else, \
                 or the user lacks `+zadd +zscore` for it",
            ),
            Self::HoldsData => f.write_str("the key holds data and is no lock"),
            Self::Held => f.write_str("held by another owner"),
            Self::TooLate => f.write_str("answered too late for the lease to be of use"),
            Self::Abstains(left) => {
                write!(
                    f,
                    "was restarted or replaced lately, may have forgotten locks and does not count for another \
                     {left:.1?} (see max_ttl)"
                )
            }
            Self::NotReplicated { acked, wanted } => {
                write!(f, "{acked} of the {wanted} replicas that confirm_replicas asks for have confirmed the lock in time")
            }
            Self::Replica => f.write_str("is a replica, and each node must be a master of its own"),
            Self::SameServer(other) => {
                write!(f, "is the same server as {}, which counts already", SingleLine(other))
            },
            Self::Unfit(reason) => SingleLine(reason).fmt(f),
        }
    }
}

impl std::error::Error for NodeError {}
