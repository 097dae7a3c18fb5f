//! What a server refuses of all that locks need, asked command by command.
//!
//! An error of a script does not name the command that was refused in it, and some scripts go on without an answer. So
//! each command is sent by itself, on the names of a lock that does not exist and in a form that changes nothing. A server
//! looks at the command before it looks at the keys, so the answer tells of the command also when the user may not use
//! that name.

use super::live_connection::LiveConnection;
use super::needed::{Permissions, brace_name, by_source, is_refusal, needed, probe_name, sorted, without_spare};
use super::script::MEMBER;
use super::side_key::{queue_name, register_name};
use crate::error::NodeError;
use crate::lock::LockKey;
use crate::lock::beside::turnstile_name;
use crate::node::report::{Purpose, Refusal, Refused};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::sleep;

/// Asks for everything at once, about the lock `key` and the `channel` of the manager. The questions are sent before this
/// returns.
pub(super) fn ask(
    live: &LiveConnection,
    key: &LockKey,
    channel: &str,
) -> impl Future<Output = Result<Permissions, NodeError>> + use<> {
    let key = key.name();
    let (queue, register) = (queue_name(key), register_name(live.namespace(), key));
    let [of_brace, turnstile] = [queue_name, turnstile_name].map(|beside| brace_name(live.namespace(), beside));
    let mut questions = questions(key, &queue, &register, channel, live.replicas().is_some());
    if !live.namespace().is_empty() {
        // Without a namespace, nobody knows the patterns of the locks.
        questions.push((Purpose::Braces, vec!["ZCARD", &of_brace]));
        questions.push((Purpose::BracePermits, vec!["GET", &turnstile]));
    }
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
                    let refusal = Refusal::new(&command, purpose, &answer);
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
        Ok(sorted(without_spare(refusals)))
    }
}

/// Pause between two questions for the permissions of a user who lacks some. Too short: the server logs each refused command. Too
/// long: locks fail for longer after the permission was granted.
const PAUSE: Duration = Duration::from_secs(1);

/// Asks for the permissions again, some time after a call was refused for the lack of one. Ends with the connection.
pub(super) async fn watch(live: &LiveConnection) -> Infallible {
    loop {
        live.needed.was_refused.notified().await;
        let key = LockKey::from(probe_name(live.namespace()));
        if let Ok(permissions) = ask(live, &key, &live.own_channel()).await {
            live.needed.record(&permissions.refusals, live.namespace());
        }
        sleep(PAUSE).await;
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
    let mut questions: Vec<_> = needed(key, queue).into_iter().map(|words| (Purpose::Locks, words)).collect();
    questions.extend([
        (Purpose::LostScripts, by_source(key)),
        // The message goes to this manager alone, and it is no wake-up, so that it is ignored.
        (Purpose::WakeUps, vec!["PUBLISH", channel, "check"]),
        (Purpose::Fencing, vec!["ZADD", register, "XX", "GT", "CH", "0", MEMBER]),
        (Purpose::Fencing, vec!["ZSCORE", register, MEMBER]),
        (Purpose::Sharing, vec!["TIME"]),
        (Purpose::Sharing, vec!["ZCOUNT", queue, "0", "0"]),
        (Purpose::Sharing, vec!["ZSCORE", queue, ""]),
    ]);
    if waits_for_replicas {
        questions.push((Purpose::Locks, vec!["WAIT", "0", "1"]));
    }
    questions
}
