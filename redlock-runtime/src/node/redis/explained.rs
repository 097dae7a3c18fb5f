//! What a user lacks who may lock, and may not look.

use crate::error::NodeError;

/// A refusal with what to do about it; any other error as it is.
pub(super) fn explained(error: NodeError, remedy: &str) -> NodeError {
    match error {
        // The second one is what Redis 6 says of a command in a script.
        NodeError::Refused(answer) if answer.contains("NOPERM") || answer.contains("can't run this command") => {
            NodeError::Unfit(remedy.into())
        }
        error => error,
    }
}
