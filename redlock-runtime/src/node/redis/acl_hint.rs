//! Explanations for users that lack a permission, to inspect or for the keys of a command.

use super::needed::has_brace;
use crate::error::NodeError;
use crate::lock::reserved::REGISTER;
use crate::node::report::{Purpose, Refusal, Refused};
use crate::protocol::command::Command;

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

/// Returns `true` if the server has not run a command, because the user may not use one of its keys.
pub(super) fn is_forbidden_key(error: &NodeError) -> bool {
    // Only the kind of the refusal is read.
    let refused = |answer: &str| Refusal::new("", Purpose::Locks, answer).refused();
    matches!(error, NodeError::Refused(answer) if !error.is_raised() && refused(answer) == Refused::Key)
}

/// Adds the ACL rules for the keys of `command` to the answer of a server that has refused one of them. The rules name no key: keys may be
/// secret.
pub(super) fn with_rules(error: NodeError, command: &Command, namespace: &str) -> NodeError {
    let NodeError::Refused(answer) = &error else { return error };
    let keys = if namespace.is_empty() { "order:" } else { namespace };
    let has_brace = command.subject.wanted().any(|(key, _)| has_brace(key.name()));
    let queue = if has_brace { format!("~{{*}}:q:{keys}*") } else { format!("~{{{keys}*") };
    let admission =
        if has_brace && command.subject.mode.is_permit() { format!(" ~{{*}}:t:{keys}*") } else { String::new() };
    let register = if command.fence.is_some() { format!(" ~{namespace}{REGISTER}*") } else { String::new() };
    let example = if namespace.is_empty() { ", if its keys begin with `order:`" } else { "" };
    NodeError::Refused(format!("{answer}: grant it `~{keys}* {queue}{admission}{register}`{example}").into())
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
