//! Encoding of the commands without a script, and decoding of their replies.

use super::question::Wire;
use super::script::{MEMBER, millis};
use super::side_key::{queue_name, register_name};
use crate::protocol::command::{Command, Verb};
use crate::time::ballot_clock::Ballot;
use redis::{Cmd, Value};

/// Builds a command that needs no script. `namespace` is the prefix of the keys of the manager.
pub(super) fn without_script(command: &Command, namespace: &str) -> Wire {
    match command.verb {
        Verb::Raise { number } => raise_register(namespace, command.key(), number).into(),
        _ => Wire { first: set_nx(command), rest: ballot(command, namespace) },
    }
}

/// Raises the register of the key's slot to `number` if it is lower.
fn raise_register(namespace: &str, key: &str, number: u64) -> Cmd {
    let mut raise = Cmd::new();
    raise.arg("ZADD").arg(register_name(namespace, key)).arg("GT").arg(number).arg(MEMBER);
    raise
}

/// Builds the plain `SET key token NX PX ttl`.
fn set_nx(command: &Command) -> Cmd {
    let (key, token) = (command.key(), command.token());
    let mut set = Cmd::with_capacity(6, key.len() + token.len() + 32);
    set.arg("SET").arg(key).arg(token).arg("NX");
    if let Verb::SetNx { ttl } = command.verb {
        set.arg("PX").arg(millis(ttl));
    }
    set
}

/// Builds the commands for the ballot that follow a `SET`, if there is one. The ballot needs no script, because it does not depend on the
/// success of the `SET`.
pub(super) fn ballot(command: &Command, namespace: &str) -> Vec<Cmd> {
    let Some(ballot) = command.fence else { return Vec::new() };
    let register = register_name(namespace, command.key());
    let (mut propose, mut read) = (Cmd::new(), Cmd::new());
    propose.arg("ZADD").arg(&register);
    if ballot == Ballot::LOOK {
        propose.arg("XX");
    }
    propose.arg("GT").arg("CH").arg(ballot.number).arg(MEMBER);
    read.arg("ZSCORE").arg(&register).arg(MEMBER);
    vec![propose, read]
}

/// Removes the token from the queue.
pub(super) fn leave_queue(command: &Command) -> Wire {
    let mut leave = Cmd::new();
    let (token, heard) = (command.token(), format!("{}#", command.token()));
    // The second member records when the token last asked, if readers blocked it.
    leave.arg("ZREM").arg(queue_name(command.key())).arg(token).arg(heard);
    leave.into()
}

/// Returns the answer of a node to a ballot, from its replies to `ZADD` and `ZSCORE`, in the format of `lua/fence.lua`.
pub(super) fn said_to(ballot: u64, answers: &[Value]) -> Value {
    let ballot = i64::try_from(ballot).unwrap_or(0);
    match answers {
        [Value::Int(1), _] => Value::Int(ballot),
        [Value::Int(0), largest] => Value::Int(-score(largest).unwrap_or(0)),
        _ => Value::Int(0),
    }
}

/// Returns a score that is a whole number.
#[expect(clippy::cast_possible_truncation, reason = "what is no whole number below 2^53 becomes none that is used")]
pub(super) fn score(value: &Value) -> Option<i64> {
    let score = match value {
        Value::Double(score) => *score,
        // Some servers write a number with many zeros as `1.4e+12`.
        Value::BulkString(text) => str::from_utf8(text).ok()?.parse::<f64>().ok()?,
        _ => return None,
    };
    Some(score as i64)
}
