//! What a server refuses of all that locks need, asked command by command.
//!
//! An error of a script does not name the command that was refused in it, and some scripts go on without an answer. So
//! each command is sent by itself, on the names of a lock that does not exist and in a form that changes nothing. A server
//! looks at the command before it looks at the keys, so the answer tells of the command also when the user may not use
//! that name.

use super::live_connection::LiveConnection;
use super::script::MEMBER;
use super::side_key::{queue_name, register_name};
use crate::error::NodeError;
use crate::lock::LockKey;
use crate::node::report::{Purpose, Refusal, Refused};

/// A digest that no script has.
const NO_SCRIPT: &str = "0000000000000000000000000000000000000000";

/// What the server refuses.
pub(super) struct Permissions {
    pub(super) refusals: Vec<Refusal>,
    /// Whether the user may use the name of the lock. If not, what is said of its keys says nothing of other locks.
    pub(super) may_use_name: bool,
}

/// Asks for everything at once, about the lock `key` and the `channel` of the manager. The questions are sent before this
/// returns.
pub(super) fn ask(
    live: &LiveConnection,
    key: &LockKey,
    channel: &str,
) -> impl Future<Output = Result<Permissions, NodeError>> + use<> {
    let key = key.name();
    let (queue, register) = (queue_name(key), register_name(live.namespace(), key));
    let questions = questions(key, &queue, &register, channel, live.replicas().is_some());
    let send = |(purpose, words): (Purpose, Vec<&str>)| {
        let command = words.first().copied().unwrap_or_default();
        (purpose, command.to_owned(), live.probe(&words))
    };
    let asked: Vec<_> = questions.into_iter().map(send).collect();
    async move {
        let mut refusals = Vec::new();
        for (purpose, command, answer) in asked {
            match answer.await {
                Err(NodeError::Refused(answer)) if is_refusal(&answer) => {
                    let refusal = Refusal::new(&command, purpose, answer);
                    let is_named = |named: &Refusal| {
                        let is_for_all = named.purpose == Purpose::Locks || named.purpose == refusal.purpose;
                        is_for_all && named.command == refusal.command && named.refused() == Refused::Command
                    };
                    // What every lock needs is not said once more of some.
                    if !refusals.iter().any(is_named) {
                        refusals.push(refusal);
                    }
                }
                Ok(_) | Err(NodeError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sorted(refusals))
    }
}

/// Every command that a script or a call uses, and what for.
fn questions<'a>(
    key: &'a str,
    queue: &'a str,
    register: &'a str,
    channel: &'a str,
    waits_for_replicas: bool,
) -> Vec<(Purpose, Vec<&'a str>)> {
    let locks = |words: &[&'a str]| (Purpose::Locks, words.to_vec());
    let mut questions = vec![
        // The first: what is refused of it is about the name of the lock alone.
        locks(&["GET", key]),
        locks(&["SET", key, "", "XX", "PX", "1"]),
        locks(&["DEL", key]),
        locks(&["PTTL", key]),
        locks(&["PEXPIRE", key, "1"]),
        locks(&["ZADD", queue, "XX", "0", ""]),
        locks(&["ZCARD", queue]),
        locks(&["ZPOPMIN", queue]),
        locks(&["ZRANGE", queue, "0", "0"]),
        locks(&["ZRANK", queue, ""]),
        locks(&["ZREM", queue, ""]),
        locks(&["EVALSHA", NO_SCRIPT, "2", key, queue]),
        (Purpose::LostScripts, vec!["EVAL", "return 1", "0"]),
        // The message goes to this manager alone, and it is no wake-up, so that it is ignored.
        (Purpose::WakeUps, vec!["PUBLISH", channel, "check"]),
        (Purpose::Fencing, vec!["ZADD", register, "XX", "GT", "CH", "0", MEMBER]),
        (Purpose::Fencing, vec!["ZSCORE", register, MEMBER]),
        (Purpose::Sharing, vec!["TIME"]),
        (Purpose::Sharing, vec!["ZCOUNT", queue, "0", "0"]),
        (Purpose::Sharing, vec!["ZSCORE", queue, ""]),
        // A range without an end above its beginning.
        (Purpose::Sharing, vec!["ZREMRANGEBYSCORE", queue, "1", "0"]),
    ];
    if waits_for_replicas {
        questions.push(locks(&["WAIT", "0", "1"]));
    }
    questions
}

/// What a server answers to a command that the user may run: the script does not exist, or another member of a cluster has
/// the key.
const PERMITTED: [&str; 5] = ["NOSCRIPT", "MOVED ", "ASK ", "TRYAGAIN ", "CLUSTERDOWN "];

/// Whether the server refuses the command to the user.
fn is_refusal(answer: &str) -> bool {
    !PERMITTED.iter().any(|code| answer.contains(code))
}

/// Takes out what says nothing of other locks.
fn sorted(mut refusals: Vec<Refusal>) -> Permissions {
    let is_name = |refusal: &Refusal| &*refusal.command == "GET" && refusal.refused() == Refused::Key;
    let may_use_name = !refusals.iter().any(is_name);
    refusals.retain(|refusal| may_use_name || refusal.refused() != Refused::Key);
    Permissions { refusals, may_use_name }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "NOPERM this user has no permissions to access one of the keys used as arguments";
    const RUN: &str = "NOPERM this user has no permissions to run the 'x' command";

    fn commands(refusals: &[(&str, &str)]) -> (Vec<Box<str>>, bool) {
        let refusals = refusals.iter().map(|(command, answer)| Refusal::new(command, Purpose::Locks, (*answer).into()));
        let Permissions { refusals, may_use_name } = sorted(refusals.collect());
        (refusals.into_iter().map(|refusal| refusal.command).collect(), may_use_name)
    }

    #[test]
    fn what_is_refused_of_a_name_that_may_not_be_used_says_nothing_but_that() {
        assert_eq!(commands(&[("GET", KEY), ("ZADD", KEY), ("ZREM", RUN)]), (vec!["ZREM".into()], false));
        assert_eq!(commands(&[("ZADD", KEY), ("GET", RUN)]), (vec!["ZADD".into(), "GET".into()], true));
    }
}
