//! Query for the commands that a server refuses, one by one.
//!
//! The error of a script does not name the refused command, and some scripts ignore the failure of a command. Each command is therefore
//! sent separately, for the names of a lock that does not exist and in a form that changes nothing. A server checks the command before the
//! keys. The reply is therefore valid for the command even if the user may not use this name.

use super::live_connection::LiveConnection;
use super::needed::{
    NO_SCRIPT, Permissions, brace_name, by_source, is_refusal, needed, probe_name, sorted, without_spare,
};
use super::script::MEMBER;
use super::side_key::{queue_name, register_name};
use crate::error::NodeError;
use crate::lock::LockKey;
use crate::lock::beside::admission_name;
use crate::node::report::{Purpose, Refusal, Refused};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::sleep;

/// Sends all queries at once, for the lock `key` and the `channel` of the manager, before it returns.
pub(super) fn ask(
    live: &LiveConnection,
    key: &LockKey,
    channel: &str,
) -> impl Future<Output = Result<Permissions, NodeError>> + use<> {
    let key = key.name();
    let (queue, register) = (queue_name(key), register_name(live.namespace(), key));
    let [of_brace, admission] = [queue_name, admission_name].map(|beside| brace_name(live.namespace(), beside));
    let mut questions = questions(key, &queue, &register, channel, live.replicas().is_some());
    if !live.namespace().is_empty() {
        // Without a namespace, the patterns of the locks are unknown.
        questions.push((Purpose::Braces, vec!["ZCARD", &of_brace]));
        questions.push((Purpose::BracePermits, vec!["GET", &admission]));
    }
    // Names the same keys as the command that was refused: the rules for the lock and for its queue may be in different selectors.
    let forbidden = live.server().forbidden_queue.name().map(|lock| (queue_name(&lock), lock));
    if let Some((queue, lock)) = &forbidden {
        questions.push((Purpose::SomeLocks, vec!["EVALSHA", NO_SCRIPT, "2", lock, queue]));
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
                    if purpose == Purpose::SomeLocks && refusal.refused() != Refused::Key {
                        continue;
                    }
                    let is_named = |named: &Refusal| {
                        let is_for_all = named.purpose == Purpose::Locks || named.purpose == refusal.purpose;
                        is_for_all && named.command == refusal.command && named.refused() == Refused::Command
                    };
                    // A command that every lock needs is reported only once.
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

/// Pause between two queries for the permissions of a user who lacks some. Too short: the server logs each refused command. Too long: locks
/// fail for longer after the permission was granted.
const PAUSE: Duration = Duration::from_secs(1);

/// Queries the permissions again, some time after a call was refused for the lack of one. Ends with the connection.
pub(super) async fn watch(live: &LiveConnection) -> Infallible {
    loop {
        live.needed.was_refused.notified().await;
        let key = LockKey::from(probe_name(live.namespace()));
        if let Ok(permissions) = ask(live, &key, &live.own_channel()).await {
            live.record_permissions(&permissions.refusals);
        }
        sleep(PAUSE).await;
    }
}

/// Returns all commands that scripts and calls use, with their purposes.
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
        // The message goes only to this manager. It is not a wake-up, and is ignored.
        (Purpose::WakeUps, vec!["PUBLISH", channel, "check"]),
        (Purpose::Fencing, vec!["ZADD", register, "XX", "GT", "CH", "0", MEMBER]),
        (Purpose::Fencing, vec!["ZSCORE", register, MEMBER]),
    ]);
    if waits_for_replicas {
        questions.push((Purpose::Locks, vec!["WAIT", "0", "1"]));
    }
    questions
}
