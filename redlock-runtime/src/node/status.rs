//! Status of a node.

use crate::error::NodeError;

/// Status of a node: up, or the reason why it cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The first connection is being made, as the error describes.
    Starting(NodeError),
    Up,
    Down(NodeError),
}

/// Converts to the reason why the node cannot be asked.
impl From<Status> for NodeError {
    fn from(status: Status) -> Self {
        match status {
            Status::Down(error) | Status::Starting(error) => error,
            // The status was different when the caller checked it.
            Status::Up => Self::Disconnected,
        }
    }
}
