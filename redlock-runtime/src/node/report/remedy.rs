//! Remedies for a node without a vote, and the errors that pass without one.

use crate::error::NodeError;
use std::borrow::Cow;
use std::time::Duration;

/// Returns `true` if a node with this error may vote again within `patience` without any action.
pub(crate) fn may_pass(error: &NodeError, patience: Duration) -> bool {
    match error {
        NodeError::RecentlyRestarted(left) => *left < patience,
        NodeError::UnexpectedReply(_) => false,
        other => other.is_transient(),
    }
}

/// Returns the error with its remedy, if it does not pass by itself and its own text has no remedy.
pub(crate) fn explained(error: NodeError, patience: Duration) -> NodeError {
    match (&error, remedy(&error)) {
        (NodeError::Refused(_), Some(remedy)) if !may_pass(&error, patience) => {
            NodeError::Unsupported(format!("{error}: {remedy}").into())
        }
        _ => error,
    }
}

/// Returns the remedy for an error; `None` if the text of the error contains it.
pub(crate) fn remedy(error: &NodeError) -> Option<Cow<'static, str>> {
    let remedy = match error {
        NodeError::Refused(answer) if answer.has_remedy() => return None,
        NodeError::Refused(answer) => return remedy_for_reply(answer),
        NodeError::Disconnected => "check whether the server was restarted or a proxy closes connections",
        NodeError::TimedOut(_) | NodeError::NoReply | NodeError::Stalled(_) | NodeError::TooLate => {
            "check whether the server or the network hangs"
        }
        NodeError::UnexpectedReply(_) => "check that this is a Redis server, and which proxies are in between",
        NodeError::RecentlyRestarted(_) => {
            "wait until then; with `appendonly yes` and `appendfsync always`, a server keeps its locks"
        }
        NodeError::NotReplicated { .. } => {
            "check that its replicas are attached and up to date, raise `node_timeout` where they are far away, or lower `confirm_replicas`"
        }
        NodeError::Replica => "give the address of a master",
        NodeError::SameServer(_) => "leave out one of the two",
        NodeError::Held
        | NodeError::Unreachable(_)
        | NodeError::Unsupported(_)
        | NodeError::Tls(_)
        | NodeError::FencingUnavailable
        | NodeError::HoldsData => {
            return None;
        }
    };
    Some(remedy.into())
}

/// Returns the remedy for an error reply. Before Redis 7, the error of a script contains the error code of the command anywhere in its
/// text.
pub(crate) fn remedy_for_reply(answer: &str) -> Option<Cow<'static, str>> {
    const REMEDIES: [(&str, &str); 18] = [
        ("NOPERM", "grant the user the missing permission"),
        ("NOAUTH", "write user and password into the URL of the node"),
        ("WRONGPASS", "correct the user and password in the URL of the node"),
        ("unknown command", "remove the `rename-command` that hides it, or use another server"),
        ("unsupported command", "use a server or proxy that allows this command"),
        ("OOM ", "raise its maxmemory, or use a separate server for locks"),
        ("NOREPLICAS", "check that its replicas are attached, or lower min-replicas-to-write"),
        ("MISCONF", "find out why it cannot write its snapshots to disk"),
        ("READONLY", "give the address of a master"),
        ("MOVED", "write redis+cluster:// instead of redis://"),
        ("CROSSSLOT", "write redis+cluster:// instead of redis://"),
        ("CLUSTERDOWN", "check `CLUSTER NODES` for masters that failed without a replica"),
        ("LOADING", "wait until it has loaded its data"),
        ("MASTERDOWN", "wait until it has reached its master"),
        ("max number of clients", "raise its maxclients, or close unused connections"),
        ("DB index", "choose a database below the number `databases` in its redis.conf"),
        ("no upstream host", "check the Redis servers behind the proxy"),
        ("BUSY ", "check which script is running"),
    ];
    if let Some((_, rest)) = answer.split_once(" to run the '")
        && let Some((command, _)) = rest.split_once('\'')
    {
        return Some(format!("grant it `+{command}`").into());
    }
    REMEDIES.iter().find(|(code, _)| answer.contains(code)).map(|(_, remedy)| (*remedy).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_need_a_fix_are_not_transient() {
        let refused = |answer: &str| NodeError::Refused(answer.into());
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        let table = [
            (refused("NOPERM this user has no permissions to run the 'get' command"), false),
            (refused("ERR unknown command 'SCRIPT'"), false),
            (refused("NOAUTH Authentication required."), false),
            (refused("MOVED 1 127.0.0.1:1"), false),
            (NodeError::Replica, false),
            (NodeError::SameServer("a".into()), false),
            (NodeError::Unsupported("is a Sentinel".into()), false),
            (NodeError::RecentlyRestarted(minute), false),
            (NodeError::RecentlyRestarted(second), true),
            (refused("LOADING Redis is loading the dataset in memory"), true),
            (refused("NOREPLICAS Not enough good replicas to write."), true),
            (refused("OOM command not allowed when used memory > 'maxmemory'."), true),
            (NodeError::Unreachable("connection refused".into()), true),
            (NodeError::Disconnected, true),
            (NodeError::NotReplicated { acked: 0, wanted: 1 }, true),
            (NodeError::TimedOut(second), true),
        ];
        for (error, expected) in table {
            assert_eq!(may_pass(&error, 2 * second), expected, "{error}");
            let names_remedy = matches!(error, NodeError::Unsupported(_) | NodeError::Unreachable(_));
            assert!(remedy(&error).is_some() || names_remedy, "{error}");
        }
    }

    #[test]
    fn permanent_refusal_advises_a_fix() {
        let explained = |answer: &str| explained(NodeError::Refused(answer.into()), Duration::from_secs(2)).to_string();
        let table = [
            ("NOPERM this user has no permissions to run the 'script|load' command", ": grant it `+script|load`"),
            ("NOAUTH Authentication required.", ": write user and password into the URL of the node"),
            ("LOADING Redis is loading the dataset in memory", "in memory"),
        ];
        for (answer, end) in table {
            assert!(explained(answer).ends_with(end), "{}", explained(answer));
        }
    }
}
