//! Steps of the model of permits.

use std::fmt;

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the same few numbers everywhere")]
pub enum Action {
    /// A token asks all nodes for the admission lock.
    Begin { token: usize },
    /// A token takes over the admission lock of another token of its process.
    Pass { from: usize, to: usize },
    /// A token yields the admission lock at a node.
    Yield { token: usize, node: usize },
    /// A token asks a node for the admission lock again.
    TakeAgain { token: usize, node: usize },
    /// A node loses its data.
    Wipe { node: usize },
    /// A token asks a node for a permit.
    Enter { token: usize, node: usize },
    /// A token is admitted.
    Admit { token: usize },
    /// A token leaves the admission lock.
    Open { token: usize },
    /// A holder asks for the admission lock at nodes where it has no permit.
    Return { token: usize },
    /// A returned holder asks its voters if they still have its permit.
    Confirm { token: usize },
    /// A returned holder asks a node for a missing permit.
    EnterBack { token: usize, node: usize },
    /// A returned holder leaves the admission lock again.
    Close { token: usize },
    /// A holder extends its permit at a node without a known one.
    Extend { token: usize, node: usize },
    /// A node executes the oldest command of a process, and the answer arrives.
    Execute { process: usize, node: usize },
    /// A node executes a command from a cut connection.
    ExecuteStale { process: usize, node: usize },
    /// A connection breaks: outstanding answers are lost, and its oldest command may be executed later.
    Cut { process: usize, node: usize },
    /// The server has lost the script of the oldest command, which is sent again behind the others.
    SendAgain { process: usize, node: usize },
    /// The admission lock at a node expires.
    ExpireTurn { node: usize },
    /// A permit at a node expires.
    ExpireEntry { node: usize, token: usize },
    /// A permit at a node is deleted without the knowledge of its token.
    Steal { node: usize, token: usize },
    /// A token releases everything.
    End { token: usize },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Begin { token } => write!(f, "t{token} asks for the admission lock"),
            Self::Pass { from, to } => write!(f, "t{to} has the admission lock of t{from}"),
            Self::Yield { token, node } => write!(f, "t{token} yields the admission lock at node {node}"),
            Self::TakeAgain { token, node } => write!(f, "t{token} asks node {node} for the admission lock again"),
            Self::Wipe { node } => write!(f, "node {node} forgets everything"),
            Self::Enter { token, node } => write!(f, "t{token} asks node {node} for a permit"),
            Self::Admit { token } => write!(f, "t{token} is admitted"),
            Self::Open { token } => write!(f, "t{token} leaves the admission lock"),
            Self::Return { token } => write!(f, "t{token} asks for the admission lock where it has no permit"),
            Self::Confirm { token } => write!(f, "t{token} asks those who have voted whether they have its permit"),
            Self::EnterBack { token, node } => write!(f, "t{token} asks node {node} for a vote that it lacks"),
            Self::Close { token } => write!(f, "t{token} leaves the admission lock again"),
            Self::Extend { token, node } => write!(f, "t{token} extends its permit at node {node}"),
            Self::Execute { process, node } => write!(f, "node {node} answers process {process}"),
            Self::ExecuteStale { process, node } => write!(f, "node {node} executes what was cut of process {process}"),
            Self::Cut { process, node } => write!(f, "the connection of process {process} to node {node} breaks"),
            Self::SendAgain { process, node } => {
                write!(f, "process {process} sends its oldest command to node {node} again")
            }
            Self::ExpireTurn { node } => write!(f, "the admission lock at node {node} expires"),
            Self::ExpireEntry { node, token } => write!(f, "the permit of t{token} at node {node} expires"),
            Self::Steal { node, token } => write!(f, "the permit of t{token} at node {node} is taken away"),
            Self::End { token } => write!(f, "t{token} ends"),
        }
    }
}
