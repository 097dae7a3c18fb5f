//! Explanations for users that may lock but lack a permission to inspect.

use crate::error::NodeError;

/// Error texts if the user may not use a command or a key. The last two are those of Redis 6 and Valkey 9 for a command in a script.
const REFUSALS: [&str; 3] = ["NOPERM", "can't run this command", "ACL failure in script"];

/// Replaces a refusal by its remedy; returns any other error unchanged.
pub(super) fn explained(error: NodeError, remedy: &str) -> NodeError {
    match error {
        NodeError::Refused(answer) if REFUSALS.iter().any(|refusal| answer.contains(refusal)) => {
            NodeError::Unsupported(remedy.into())
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_errors_of_every_server_product_get_an_acl_hint() {
        let table = [
            ("NOPERM User alice has no permissions to run the 'eval' command", true),
            ("ERR The user executing the script can't run this command or subcommand", true),
            ("ERR ACL failure in script: User alice has no permissions to run the 'get' command", true),
            ("BUSY Redis is busy running a script", false),
        ];
        for (answer, is_explained) in table {
            let explained = explained(NodeError::Refused(answer.into()), "grant it");
            assert_eq!(matches!(explained, NodeError::Unsupported(_)), is_explained, "{explained}");
        }
    }
}
