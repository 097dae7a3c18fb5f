//! One live connection: commands to wire format, wire format to replies.

use super::courier::Outbox;
use super::script::{Script, Scripts};
use crate::error::NodeError;
use crate::node::{Answer, Command, Pending, Reply, Verb};
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use std::time::Duration;

pub(super) struct Link {
    pub(super) outbox: Outbox,
    pub(super) scripts: Scripts,
    pub(super) capabilities: Capabilities,
}

/// What this server can do beyond the oldest supported one. Probed, never concluded from a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// `SET key value IFEQ value PX ttl`: an extension without a script.
    pub(super) set_ifeq: bool,
}

impl Link {
    /// Puts `command` into the order of the connection before it returns.
    pub(super) fn send(&self, command: Command) -> Pending {
        let (key, token) = (command.key(), command.token());
        let wire = match command.verb {
            Verb::SetNx { ttl } => set(key, token, ttl, |set| set.arg("NX")),
            Verb::Extend { ttl } if self.capabilities.set_ifeq => {
                set(key, token, ttl, |set| set.arg("IFEQ").arg(token))
            }
            Verb::Extend { .. } => self.scripts.extend.by_digest(&command),
            Verb::Release => self.scripts.release.by_digest(&command),
        };
        self.outbox.put(command, wire)
    }

    /// What to send instead when the server has lost the script: after `SCRIPT FLUSH`.
    pub(super) fn instead(&self, command: &Command, error: &RedisError) -> Option<Cmd> {
        let is_lost = error.kind() == ErrorKind::Server(ServerErrorKind::NoScript);
        self.script(command.verb).filter(|_| is_lost).map(|script| script.by_source(command))
    }

    /// The script that executes `verb`, if one does.
    const fn script(&self, verb: Verb) -> Option<&Script> {
        match verb {
            Verb::SetNx { .. } => None,
            Verb::Extend { .. } => Some(&self.scripts.extend),
            Verb::Release => Some(&self.scripts.release),
        }
    }
}

fn set(key: &str, token: &str, ttl: Duration, condition: impl FnOnce(&mut Cmd) -> &mut Cmd) -> Cmd {
    let mut set = Cmd::with_capacity(7, key.len() + 2 * token.len() + 32);
    condition(set.arg("SET").arg(key).arg(token)).arg("PX").arg(millis(ttl));
    set
}

/// Redis takes an expiry in whole milliseconds; `checked_ttl` bounds it far below the end of `u64`.
pub(super) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn reply(verb: Verb, answer: &Value) -> Answer {
    match (verb, answer) {
        (Verb::SetNx { .. }, Value::Okay) => Ok(Reply::Granted),
        (Verb::SetNx { .. }, Value::Nil) => Ok(Reply::Held),
        (Verb::Extend { .. }, Value::Okay | Value::Int(1)) => Ok(Reply::Extended),
        (Verb::Release, Value::Int(1)) => Ok(Reply::Released),
        (Verb::Extend { .. }, Value::Nil) | (Verb::Extend { .. } | Verb::Release, Value::Int(0)) => Ok(Reply::NotOwner),
        (_, other) => Err(NodeError::Refused(format!("{other:?}, which is no answer to this command").into())),
    }
}

/// A server's error answer, or a broken connection.
pub(super) fn refused(error: &RedisError) -> NodeError {
    if error.is_io_error() || error.kind() == ErrorKind::Parse {
        return NodeError::Disconnected;
    }
    if error.kind() == ErrorKind::AuthenticationFailed {
        // The client crate does not keep the server's words.
        return NodeError::Refused("that user or password is wrong".into());
    }
    let code = error.code().unwrap_or_default();
    let answer = match error.detail() {
        Some(detail) => format!("{code} {detail}"),
        None if code.is_empty() => error.to_string(),
        None => code.to_owned(),
    };
    NodeError::Refused(answer.trim().into())
}

/// Before Redis 7, the error of a script has the code of its own and that of the command in it in its text.
pub(super) fn is_of_another_type(error: &RedisError) -> bool {
    error.code() == Some("WRONGTYPE") || error.detail().is_some_and(|detail| detail.contains("WRONGTYPE"))
}
