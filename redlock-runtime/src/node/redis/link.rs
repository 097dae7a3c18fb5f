//! One live connection: commands to wire format, wire format to replies.

use super::script::{Script, Scripts};
use crate::error::NodeError;
use crate::node::{Answer, Command, Reply, Verb};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value, cmd};
use std::time::Duration;

pub(super) struct Link {
    pub(super) connection: MultiplexedConnection,
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
    /// Sends `command` at the first poll; then waits for the answer.
    pub(super) async fn execute(&self, command: Command) -> Answer {
        match command.verb {
            Verb::SetNx { ttl } => {
                let mut set = cmd("SET");
                set.arg(command.key.name()).arg(command.token.as_str()).arg("NX").arg("PX").arg(millis(ttl));
                set_reply(&self.call(&set).await?, Reply::Granted, Reply::Held)
            }
            Verb::Extend { ttl } if self.capabilities.set_ifeq => {
                let (key, token) = (command.key.name(), command.token.as_str());
                let mut set = cmd("SET");
                set.arg(key).arg(token).arg("IFEQ").arg(token).arg("PX").arg(millis(ttl));
                set_reply(&self.call(&set).await?, Reply::Extended, Reply::NotOwner)
            }
            Verb::Extend { ttl } => {
                let answer = self.run(&self.scripts.extend, &command, Some(ttl)).await?;
                script_reply(&answer, Reply::Extended)
            }
            Verb::Release => {
                let answer = self.run(&self.scripts.release, &command, None).await?;
                script_reply(&answer, Reply::Released)
            }
        }
    }

    async fn call(&self, command: &Cmd) -> Result<Value, NodeError> {
        match self.connection.clone().send_packed_command(command).await {
            Ok(Value::ServerError(error)) => Err(refused(&error.into())),
            Ok(value) => Ok(value),
            Err(error) => Err(refused(&error)),
        }
    }

    /// Runs a script by its digest, and by its source when the server has lost it: after `SCRIPT FLUSH`.
    async fn run(&self, script: &Script, command: &Command, ttl: Option<Duration>) -> Result<Value, NodeError> {
        let call = |mut call: Cmd| {
            call.arg(1).arg(command.key.name()).arg(command.token.as_str());
            if let Some(ttl) = ttl {
                call.arg(millis(ttl));
            }
            call
        };
        let answer = self.connection.clone().send_packed_command(&call(script.call())).await;
        match answer.and_then(Value::extract_error) {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.call(&call(script.call_by_source())).await
            }
            Err(error) => Err(refused(&error)),
            Ok(value) => Ok(value),
        }
    }
}

/// Redis takes an expiry in whole milliseconds; `checked_ttl` bounds it far below the end of `u64`.
fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

fn set_reply(answer: &Value, done: Reply, not_done: Reply) -> Answer {
    match answer {
        Value::Okay => Ok(done),
        Value::Nil => Ok(not_done),
        other => Err(unexpected(other)),
    }
}

fn script_reply(answer: &Value, done: Reply) -> Answer {
    match answer {
        Value::Int(1) => Ok(done),
        Value::Int(0) => Ok(Reply::NotOwner),
        other => Err(unexpected(other)),
    }
}

fn unexpected(answer: &Value) -> NodeError {
    NodeError::Refused(format!("{answer:?}, which is not an answer to this command").into())
}

/// A server's error answer, or a broken connection.
pub(super) fn refused(error: &RedisError) -> NodeError {
    if error.is_io_error() || error.kind() == ErrorKind::Parse {
        return NodeError::Disconnected;
    }
    let code = error.code().unwrap_or_default();
    let answer = match error.detail() {
        Some(detail) => format!("{code} {detail}"),
        None if code.is_empty() => error.to_string(),
        None => code.to_owned(),
    };
    NodeError::Refused(answer.trim().into())
}
