//! Whether a node can be asked.

use crate::error::NodeError;

/// Whether a node can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The first connection is being made, as the error describes.
    Starting(NodeError),
    Up,
    Down(NodeError),
}

/// Why a node cannot be asked whose status this is.
impl From<Status> for NodeError {
    fn from(status: Status) -> Self {
        match status {
            Status::Down(error) | Status::Starting(error) => error,
            // It was not when the caller looked.
            Status::Up => Self::Disconnected,
        }
    }
}
