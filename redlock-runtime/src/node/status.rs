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
