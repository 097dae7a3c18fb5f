//! The permissions that every lock needs. A user without them acquires no lock, because it could not release the lock.

use super::answer::refused;
use super::side_key::queue_name;
use crate::error::NodeError;
use crate::node::report::{Purpose, Refusal, Refused, text};
use crate::protocol::command::{Command, Verb};
use crate::protocol::trial::TRIAL_NAME;
use redis::{Pipeline, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// A digest that no script has.
pub(super) const NO_SCRIPT: &str = "0000000000000000000000000000000000000000";

/// The permissions that every lock needs and the user lacks, according to the last query. Such a user is refused before any command is
/// sent: it could not release an acquired lock.
#[derive(Default)]
pub(super) struct Needed {
    is_refused: AtomicBool,
    known: Mutex<Known>,
    /// Notified after a call was refused, so that the permissions are queried again.
    pub(super) was_refused: Notify,
}

/// Reasons why locks fail.
#[derive(Default)]
struct Known {
    of_all: Option<NodeError>,
    /// The reason for locks with a closing brace in their names.
    of_braces: Option<NodeError>,
}

impl Needed {
    /// Records the refusals of the server below `namespace`. Without a namespace, the names of locks are unknown, so that only commands are
    /// relevant.
    pub(super) fn record(&self, refusals: &[Refusal], namespace: &str) {
        let is_known = |refusal: &&Refusal| match refusal.refused() {
            Refused::Command | Refused::Unknown => true,
            Refused::Key => !namespace.is_empty(),
            Refused::Channel => false,
            // For example the refusal of a proxy. Other commands may be refused like this for a key that is not a lock.
            Refused::Other => is_script(refusal) && !NodeError::Refused(refusal.answer.clone().into()).is_transient(),
        };
        let refusals = without_spare(refusals.iter().filter(is_known).cloned().collect());
        let name = probe_name(namespace);
        let unfit = |purpose| text(&refusals, purpose, &name).map(|text| NodeError::Unsupported(text.into()));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Known { of_all: unfit(Purpose::Locks), of_braces: unfit(Purpose::Braces) };
        self.is_refused.store(known.of_all.is_some() || known.of_braces.is_some(), Ordering::Relaxed);
    }

    /// Returns an error if `command` acquires a lock that could not be released, or takes the place of a holder. Such a command must not be
    /// sent.
    pub(super) fn refusal(&self, command: &Command) -> Option<NodeError> {
        let acquires =
            matches!(command.verb, Verb::SetNx { .. } | Verb::Acquire { .. } | Verb::Enter { .. } | Verb::Revoke);
        if !acquires || !self.is_refused.load(Ordering::Relaxed) {
            return None;
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let of_braces = known.of_braces.as_ref().filter(|_| has_brace(command.key()));
        let refusal = known.of_all.as_ref().or(of_braces).cloned();
        if refusal.is_some() {
            self.was_refused.notify_one();
        }
        refusal
    }
}

/// Returns `true` if the queue of a key has a name of its own kind. The queue of a key that begins with a brace is named after the key in
/// it.
pub(super) fn has_brace(key: &str) -> bool {
    key.contains('}') && !key.starts_with('{')
}

/// Returns the name of a lock that does not exist, below `namespace`.
pub(super) fn probe_name(namespace: &str) -> String {
    [namespace, TRIAL_NAME].concat()
}

/// Adds the queries for the needed permissions to the queries of a new connection.
pub(super) fn add_questions(pipeline: &mut Pipeline, namespace: &str) {
    let name = probe_name(namespace);
    for (_, words) in at_connection(&name, &queue_name(&name), &brace_name(namespace, queue_name)) {
        for (at, word) in words.iter().enumerate() {
            _ = if at == 0 { pipeline.cmd(word) } else { pipeline.arg(word) };
        }
    }
}

/// Reads the replies to [`add_questions`].
pub(super) fn refusals(answers: impl Iterator<Item = Value>) -> Vec<Refusal> {
    let refusal =
        |((purpose, words), answer): ((Purpose, Vec<&str>), Value)| match refused(&answer.extract_error().err()?) {
            NodeError::Refused(answer) if is_refusal(&answer) => Some(Refusal::new(words.first()?, purpose, &answer)),
            _ => None,
        };
    sorted(at_connection("", "", "").into_iter().zip(answers).filter_map(refusal).collect()).refusals
}

/// Returns the name of a side key of a lock that does not exist and has a closing brace in its name.
pub(super) fn brace_name(namespace: &str, beside: fn(&str) -> String) -> String {
    beside(&[&probe_name(namespace), "{7}"].concat())
}

/// Returns the permissions that must be known before a plain `SET` acquires a lock.
fn at_connection<'a>(key: &'a str, queue: &'a str, of_brace: &'a str) -> Vec<(Purpose, Vec<&'a str>)> {
    let of_all = needed(key, queue).into_iter().map(|words| (Purpose::Locks, words));
    of_all.chain([(Purpose::Braces, vec!["ZCARD", of_brace]), (Purpose::LostScripts, by_source(key))]).collect()
}

/// Returns the number of queries of [`add_questions`].
pub(super) fn questions() -> usize {
    at_connection("", "", "").len()
}

/// Runs a script by its source. It names a key, because proxies find the server by it.
pub(super) fn by_source(key: &str) -> Vec<&str> {
    vec!["EVAL", "return 1", "1", key]
}

/// Returns `true` if a script was refused, by its digest or by its source.
fn is_script(refusal: &Refusal) -> bool {
    matches!(&*refusal.command, "EVALSHA" | "EVAL")
}

/// Returns `true` if the server refuses `command` for any key.
pub(super) fn refuses(refusals: &[Refusal], command: &str) -> bool {
    refusals.iter().any(|refusal| &*refusal.command == command && refusal.refused() != Refused::Key)
}

/// Returns all commands that every lock uses.
pub(super) fn needed<'a>(key: &'a str, queue: &'a str) -> [Vec<&'a str>; 15] {
    [
        // The first one: its refusal concerns only the name of the lock.
        vec!["GET", key],
        vec!["SET", key, "", "XX", "PX", "1"],
        vec!["DEL", key],
        vec!["PTTL", key],
        vec!["PEXPIRE", key, "1"],
        vec!["ZADD", queue, "XX", "0", ""],
        vec!["ZCARD", queue],
        vec!["ZCOUNT", queue, "0", "0"],
        vec!["ZPOPMIN", queue],
        vec!["ZRANGE", queue, "0", "0"],
        vec!["ZRANK", queue, ""],
        vec!["ZREM", queue, ""],
        vec!["ZSCORE", queue, ""],
        vec!["TIME"],
        vec!["EVALSHA", NO_SCRIPT, "2", key, queue],
    ]
}

/// The refusals of a server.
pub(super) struct Permissions {
    pub(super) refusals: Vec<Refusal>,
    /// `true` if the user may use the name of the lock. Otherwise the refusals for its keys do not apply to other locks.
    pub(super) may_use_name: bool,
}

/// Replies of a server to a command that the user may run: the script does not exist, or another member of a cluster has the key.
const PERMITTED: [&str; 5] = ["NOSCRIPT", "MOVED ", "ASK ", "TRYAGAIN ", "CLUSTERDOWN "];

/// Returns `true` if the server refuses the command to the user.
pub(super) fn is_refusal(answer: &str) -> bool {
    !PERMITTED.iter().any(|code| answer.contains(code))
}

/// Removes the refusal of scripts by digest, if scripts by source are accepted.
pub(super) fn without_spare(mut refusals: Vec<Refusal>) -> Vec<Refusal> {
    if !refuses(&refusals, "EVAL") {
        refusals.retain(|refusal| &*refusal.command != "EVALSHA" || refusal.purpose == Purpose::SomeLocks);
    }
    refusals
}

/// Removes refusals that do not apply to other locks.
pub(super) fn sorted(mut refusals: Vec<Refusal>) -> Permissions {
    let is_name = |refusal: &Refusal| {
        refusal.purpose == Purpose::Locks && &*refusal.command == "GET" && refusal.refused() == Refused::Key
    };
    let may_use_name = !refusals.iter().any(is_name);
    refusals
        .retain(|refusal| may_use_name || refusal.refused() != Refused::Key || refusal.purpose == Purpose::SomeLocks);
    Permissions { refusals, may_use_name }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "NOPERM this user has no permissions to access one of the keys used as arguments";
    const RUN: &str = "NOPERM this user has no permissions to run the 'x' command";

    fn commands(refusals: &[(&str, &str)]) -> (Vec<Box<str>>, bool) {
        let refusals = refusals.iter().map(|(command, answer)| Refusal::new(command, Purpose::Locks, answer));
        let Permissions { refusals, may_use_name } = sorted(refusals.collect());
        (refusals.into_iter().map(|refusal| refusal.command).collect(), may_use_name)
    }

    #[test]
    fn key_refusals_are_omitted_if_the_probed_name_is_forbidden() {
        assert_eq!(commands(&[("GET", KEY), ("ZADD", KEY), ("ZREM", RUN)]), (vec!["ZREM".into()], false));
        assert_eq!(commands(&[("ZADD", KEY), ("GET", RUN)]), (vec!["ZADD".into(), "GET".into()], true));
    }

    #[test]
    fn one_script_command_suffices() {
        type Refused<'a> = &'a [(&'a str, &'a str)];
        let unsupported = "ERR unsupported command";
        let table: [(Refused<'_>, &[&str]); 4] = [
            (&[("EVALSHA", RUN)], &[]),
            (&[("EVALSHA", RUN), ("EVAL", KEY)], &["EVAL"]),
            (&[("EVAL", RUN)], &["EVAL"]),
            (&[("EVALSHA", unsupported), ("EVAL", "invalid request")], &["EVALSHA", "EVAL"]),
        ];
        for (refused, expected) in table {
            let refusals = refused.iter().map(|(command, answer)| Refusal::new(command, Purpose::Locks, answer));
            let left = without_spare(refusals.collect());
            assert_eq!(left.iter().map(|refusal| &*refusal.command).collect::<Vec<_>>(), expected, "{refused:?}");
        }
    }

    #[test]
    fn user_without_script_permission_cannot_acquire() {
        let table =
            [(RUN, true), ("ERR unsupported command", true), ("invalid request", true), ("OOM used memory", false)];
        for (answer, expected) in table {
            let needed = Needed::default();
            let refusal = |command, purpose| Refusal::new(command, purpose, answer);
            needed.record(&[refusal("EVALSHA", Purpose::Locks), refusal("EVAL", Purpose::LostScripts)], "");
            assert_eq!(needed.is_refused.load(Ordering::Relaxed), expected, "{answer}");
        }
    }
}
