//! Whether a node can be asked.

use crate::error::NodeError;

/// Whether a node can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The first connection is being made.
    Starting,
    Up,
    Down(NodeError),
}

/// Why a node cannot be asked whose status this is.
impl From<Status> for NodeError {
    fn from(status: Status) -> Self {
        match status {
            Status::Down(error) => error,
            Status::Starting | Status::Up => Self::Unreachable("the first connection is being made".into()),
        }
    }
}
