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
        _ => set_nx(command, namespace),
    }
}

/// Raises the register of the key's slot to `number` if it is lower.
fn raise_register(namespace: &str, key: &str, number: u64) -> Cmd {
    let mut raise = Cmd::new();
    raise.arg("ZADD").arg(register_name(namespace, key)).arg("GT").arg(number).arg(MEMBER);
    raise
}

/// Builds the plain `SET key token NX PX ttl`, followed by the commands for the ballot, if there is one. The ballot needs no script,
/// because it does not depend on the success of the `SET`.
fn set_nx(command: &Command, namespace: &str) -> Wire {
    let (key, token) = (command.key(), command.token());
    let mut set = Cmd::with_capacity(6, key.len() + token.len() + 32);
    set.arg("SET").arg(key).arg(token).arg("NX");
    if let Verb::SetNx { ttl } = command.verb {
        set.arg("PX").arg(millis(ttl));
    }
    let Some(ballot) = command.fence else { return set.into() };
    let register = register_name(namespace, key);
    let (mut propose, mut read) = (Cmd::new(), Cmd::new());
    propose.arg("ZADD").arg(&register);
    if ballot == Ballot::LOOK {
        propose.arg("XX");
    }
    propose.arg("GT").arg("CH").arg(ballot.number).arg(MEMBER);
    read.arg("ZSCORE").arg(&register).arg(MEMBER);
    let rest = if ballot.reads_register { vec![propose, read] } else { vec![propose] };
    Wire { first: set, rest }
}

/// Removes the token from the queue.
pub(super) fn leave_queue(command: &Command) -> Wire {
    let mut leave = Cmd::new();
    let (token, heard) = (command.token(), format!("{}#", command.token()));
    // The second member records when the token last asked, if readers blocked it.
    leave.arg("ZREM").arg(queue_name(command.key())).arg(token).arg(heard);
    leave.into()
}

/// Returns the answer of a node to a ballot, from its replies to `ZADD` and, if it was sent, `ZSCORE`, in the format of `lua/fence.lua`.
pub(super) fn said_to(ballot: u64, answers: &[Value]) -> Value {
    let ballot = i64::try_from(ballot).unwrap_or(0);
    match answers {
        [Value::Int(1), ..] => Value::Int(ballot),
        // The register is at least as large.
        [Value::Int(0)] => Value::Int(-ballot),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::OwnerToken;
    use crate::lock::owner_token::ManagerId;
    use crate::protocol::command::Subject;
    use crate::time::token_clock::TokenTime;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn plain_fenced_lock_reads_the_register_only_where_a_refusal_is_likely() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0));
        let verb = Verb::SetNx { ttl: Duration::from_secs(1) };
        let commands = |fence| {
            let command = Command { verb, fence, subject: Arc::new(Subject::new("order:7".into(), token)) };
            1 + without_script(&command, "").rest.len()
        };
        let [likely, unlikely] = [Ballot::known(7), Ballot::known(7).without_register()];
        assert_eq!([None, Some(unlikely), Some(likely)].map(commands), [1, 2, 3]);
    }

    #[test]
    fn refusal_without_the_register_shows_the_ballot_as_a_lower_bound() {
        let [accepted, refused, error] = [Value::Int(1), Value::Int(0), Value::Nil];
        let table: [(&[Value], i64); 6] = [
            (&[accepted.clone()], 7),
            (&[refused.clone()], -7),
            (&[error.clone()], 0),
            (&[accepted, Value::Nil], 7),
            (&[refused, Value::Double(9.0)], -9),
            (&[error.clone(), error], 0),
        ];
        for (answers, expected) in table {
            assert_eq!(said_to(7, answers), Value::Int(expected), "{answers:?}");
        }
    }
}
