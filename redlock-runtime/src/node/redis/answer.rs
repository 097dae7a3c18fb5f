//! Decoding of replies and published messages of a node.

use crate::error::{ErrorReply, NodeError};
use crate::lock::OwnerToken;
use crate::lock::owner_token;
use crate::protocol::command::{Answer, Number, Occupant, Reply, Verb, Wakeup};
use crate::text::excerpt;
use crate::time::ballot_clock::Ballot;
use crate::time::token_clock::TokenTime;
use redis::{ErrorKind, PushInfo, PushKind, RedisError, Value};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

/// Returns the answer to a command, and the time of the newest token that the node reports in its reply.
pub(super) fn answer(verb: Verb, value: &Value) -> (Answer, Option<TokenTime>) {
    let (parts, seen) = match value {
        Value::Array(parts) => parted(parts),
        single => (slice::from_ref(single), None),
    };
    let answer = match (verb, parts) {
        (Verb::Acquire { .. }, [Value::Int(-1)]) => Err(NodeError::HoldsData),
        _ => reply(verb, parts).ok_or_else(|| NodeError::UnexpectedReply(excerpt(format_args!("{value:?}")).into())),
    };
    (answer, seen)
}

/// Removes the times from the end of an array: the time of the server, which begins with an `@`, and after it the time of a token. Each may
/// be missing.
fn parted(parts: &[Value]) -> (&[Value], Option<TokenTime>) {
    match parts {
        [parts @ .., Value::BulkString(time)] if time.starts_with(b"@") => (parted(parts).0, None),
        [parts @ .., Value::BulkString(seen)] => {
            (parted(parts).0, str::from_utf8(seen).ok().and_then(owner_token::time))
        }
        parts => (parts, None),
    }
}

/// Returns the time of the server in a reply, since 1970.
pub(super) fn server_time(value: &Value) -> Option<Duration> {
    let Value::Array(parts) = value else { return None };
    parts.iter().find_map(|part| {
        let Value::BulkString(part) = part else { return None };
        let (seconds, micros) = str::from_utf8(part).ok()?.strip_prefix('@')?.split_once('.')?;
        time_of([seconds, micros])
    })
}

/// Reason why a server does not report its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Untold {
    /// The user may not run the command, or the command does not exist.
    Forbidden,
    /// Another reason, which is transient.
    Failed,
}

/// Reads the reply of a server to `TIME`.
pub(super) fn parse_time_reply(value: Value) -> Result<Duration, Untold> {
    let said = value.extract_error().map_err(|error| match error.code() {
        Some("NOPERM") => Untold::Forbidden,
        _ if error.to_string().contains("unknown command") => Untold::Forbidden,
        _ => Untold::Failed,
    })?;
    let [seconds, micros]: [String; 2] = redis::from_redis_value(said).map_err(|_| Untold::Failed)?;
    time_of([&seconds, &micros]).ok_or(Untold::Failed)
}

/// Reads the two parts of the reply to `TIME`.
pub(super) fn time_of([seconds, micros]: [&str; 2]) -> Option<Duration> {
    Duration::from_secs(seconds.parse().ok()?).checked_add(Duration::from_micros(micros.parse().ok()?))
}

/// Returns the reply to a command of this `verb` with these `parts`. Returns `None` if they have another format.
fn reply(verb: Verb, parts: &[Value]) -> Option<Reply> {
    let reply = match (verb, parts) {
        (Verb::SetNx { .. }, [Value::Okay]) => Reply::Granted { smaller: false, number: None },
        (Verb::SetNx { .. }, [Value::Okay, number @ Value::Int(_)]) => {
            Reply::Granted { smaller: false, number: fencing_number(slice::from_ref(number)).ok()? }
        }
        (Verb::SetNx { .. }, [Value::Nil | Value::Int(0)] | [Value::Nil, _])
        | (Verb::Enter { .. }, [Value::Int(0)]) => Reply::Taken,
        // A shared lock, or several locks, which a script has taken.
        (Verb::SetNx { .. }, [Value::Int(1), number @ ..]) => {
            Reply::Granted { smaller: false, number: fencing_number(number).ok()? }
        }
        (Verb::Acquire { .. }, [Value::Int(1), Value::Int(smaller), number @ ..]) => {
            Reply::Granted { smaller: *smaller == 1, number: fencing_number(number).ok()? }
        }
        (Verb::Acquire { .. }, [Value::Int(0), Value::Int(left), Value::Int(rank)]) => {
            Reply::Queued { left: pttl(*left), rank: count(*rank)? }
        }
        (Verb::Enter { .. }, [Value::Int(-1)]) => Reply::NotOwner,
        (Verb::Enter { .. }, [Value::Int(1), Value::Int(left), Value::Array(others)]) => {
            let (others, strangers) = parse_permit_holders(others)?;
            Reply::Entered { others, strangers, left: pttl(*left) }
        }
        (verb, [Value::Int(-1)])
            if verb.is_extension() || matches!(verb, Verb::Yield { .. } | Verb::Release { .. }) =>
        {
            Reply::NotOwner
        }
        (Verb::Revoke, [Value::Int(-1)]) => Reply::NotOwner,
        (Verb::Revoke, [Value::Int(left), Value::Int(told)]) => {
            Reply::Revoked { left: pttl(*left)?, is_told: *told > 0 }
        }
        (verb, [Value::Int(waiters), number @ ..]) if verb.is_extension() => {
            Reply::Extended { waiters: count(*waiters)?, number: fencing_number(number).ok()? }
        }
        (Verb::Yield { .. }, [Value::Int(1)]) => Reply::Kept,
        (Verb::Yield { .. }, [Value::Int(0), Value::Int(left)]) => Reply::Yielded { left: pttl(*left) },
        (Verb::Release { .. }, [Value::Int(1)]) => Reply::Released,
        (Verb::Release { .. }, [Value::Int(two @ (2 | -2))]) => Reply::Unfinished { was_owner: *two > 0 },
        (Verb::Raise { .. }, [Value::Int(_)]) => Reply::Raised,
        _ => return None,
    };
    Some(reply)
}

/// Returns the holders of permits, and the number of other holders whose names are not tokens. Returns `None` if the value is not a list of
/// names.
fn parse_permit_holders(names: &[Value]) -> Option<(Arc<[OwnerToken]>, u32)> {
    let token = |name: &[u8]| OwnerToken::parse(str::from_utf8(name).ok()?);
    let (mut tokens, mut strangers) = (Vec::new(), 0);
    for name in names {
        let Value::BulkString(name) = name else { return None };
        match token(name) {
            Some(token) => tokens.push(token),
            None => strangers += 1,
        }
    }
    Some((tokens.into(), strangers))
}

/// Reads the answer of a node to a ballot, at the end of a reply. Returns `None` if there was no ballot, or its register cannot be used.
///
/// # Errors
/// If the parts have another format. The whole reply is unintelligible then.
fn fencing_number(parts: &[Value]) -> Result<Option<Number>, NoNumber> {
    match parts {
        [] | [Value::Int(0)] => Ok(None),
        [Value::Int(accepted @ 1..)] => {
            let ballot = accepted.unsigned_abs();
            if Ballot::NUMBERS.contains(&ballot) { Ok(Some(Number::Accepted(ballot))) } else { Err(NoNumber) }
        }
        [Value::Int(refused)] => {
            // A number that leaves no room above it was never accepted by a node: another program uses the register.
            let largest = refused.unsigned_abs();
            Ok(Ballot::has_room_above(largest).then_some(Number::Refused { largest }))
        }
        _ => Err(NoNumber),
    }
}

/// The parts are not an answer to a ballot.
struct NoNumber;

/// Returns the remaining lease, from the reply to `PTTL`; `None` for a key without expiry, for which the reply is negative.
fn pttl(left: i64) -> Option<Duration> {
    u64::try_from(left).ok().map(Duration::from_millis)
}

/// Returns the occupant of a key, from the reply to `PTTL`: -1 for a key without expiry, -2 for a missing key.
pub(super) fn occupant(value: &Value) -> Occupant {
    match value {
        Value::Int(-2) => Occupant::Nobody,
        Value::Int(-1) => Occupant::Data,
        Value::Int(left) => pttl(*left).map_or(Occupant::Unknown, Occupant::Lock),
        _ => Occupant::Unknown,
    }
}

/// Returns a number of tokens, `None` if it is negative.
fn count(tokens: i64) -> Option<u32> {
    u32::try_from(tokens).ok()
}

/// Returns the wake-up in a push message, if it is a wake-up.
pub(super) fn wakeup(push: &PushInfo) -> Option<Wakeup> {
    match (&push.kind, push.data.as_slice()) {
        (PushKind::Message, [_, Value::BulkString(payload)]) => wakeup_in(payload),
        _ => None,
    }
}

/// Returns the wake-up in the `payload` of a published message, if it is a wake-up.
pub(super) fn wakeup_in(payload: &[u8]) -> Option<Wakeup> {
    Wakeup::parse(str::from_utf8(payload).ok()?)
}

/// Error text of a proxy that has passed a command on and lost its server. The server may have executed the command.
///
/// Source: Envoy, `command_splitter_impl.h`.
const LOST_BY_PROXY: &str = "upstream failure";

/// Converts the error that the client crate reports: the connection broke, or the server answered with an error.
pub(super) fn refused(error: &RedisError) -> NodeError {
    if error.is_io_error() || error.kind() == ErrorKind::Parse {
        return NodeError::Disconnected;
    }
    if error.kind() == ErrorKind::AuthenticationFailed {
        // The client crate does not keep the server's text.
        return NodeError::Refused("WRONGPASS: that user or password is wrong".into());
    }
    // The client crate replaces the code of a refused `SELECT` by `ERR`.
    let is_permission = error.detail().is_some_and(|detail| detail.contains("no permissions to run"));
    let code = if is_permission { "NOPERM" } else { error.code().unwrap_or_default() };
    let answer = match error.detail() {
        Some(detail) => format!("{code} {detail}"),
        None if code.is_empty() => error.to_string(),
        None => code.to_owned(),
    };
    let (answer, is_raised) = without_script(without_arguments(&answer));
    let text = excerpt(answer.trim());
    if answer.trim() == LOST_BY_PROXY {
        return NodeError::UnexpectedReply(text.into());
    }
    NodeError::Refused(if is_raised { ErrorReply::raised(text) } else { text.into() })
}

/// Returns the error text without the arguments of the command or the script: they may contain a script, a key or a password.
fn without_arguments(answer: &str) -> &str {
    /// Text before the arguments: `ERR unknown command 'SCRIPT', with args beginning with: 'LOAD' 'local ..`.
    const ARGUMENTS: &str = ", with args beginning with";
    const COMPILING: &str = "Error compiling script";
    let answer = answer.split_once(ARGUMENTS).map_or(answer, |(before, _)| before);
    let compiling = answer.find(COMPILING).and_then(|at| answer.get(..at + COMPILING.len()));
    compiling.unwrap_or(answer)
}

/// Returns the error of a command in a script without the text that the server adds about the script. Also returns `true` if the script was
/// running. If a server does not start a script, or a script returns an error, the server adds no text.
fn without_script(answer: &str) -> (&str, bool) {
    // Since Redis 7: `OOM too much. script: 5a3f.., on @user_script:7.`
    if let Some((answer, script)) = answer.rsplit_once(" script: ")
        && script.contains("@user_script")
    {
        return (answer, true);
    }
    // Before: `ERR Error running script (call to f_5a3f..): @user_script:7: -OOM too much.`
    match answer.rsplit_once("@user_script:") {
        Some((before, rest)) if before.starts_with("ERR Error running script") => {
            (rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ' ' | ':' | '-')), true)
        }
        _ => (answer, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);
    const ACQUIRE: Verb = Verb::Acquire { ttl: TTL, claim: TTL, holds: false };
    const EXTEND: Verb = Verb::Extend { ttl: TTL };
    const ADOPT: Verb = Verb::Adopt { ttl: TTL };
    const YIELD: Verb = Verb::Yield { claim: TTL };
    const RELEASE: Verb = Verb::Release { claim: TTL };

    fn numbers(numbers: impl IntoIterator<Item = i64>) -> Value {
        Value::Array(numbers.into_iter().map(Value::Int).collect())
    }

    #[test]
    fn every_reply_shape_is_parsed() {
        let second = Some(Duration::from_secs(1));
        let table = [
            (Verb::SetNx { ttl: TTL }, Value::Okay, Reply::Granted { smaller: false, number: None }),
            (Verb::SetNx { ttl: TTL }, Value::Nil, Reply::Taken),
            (Verb::SetNx { ttl: TTL }, numbers([1, 0]), Reply::Granted { smaller: false, number: None }),
            (Verb::SetNx { ttl: TTL }, numbers([0]), Reply::Taken),
            (ACQUIRE, numbers([1, 1]), Reply::Granted { smaller: true, number: None }),
            (ACQUIRE, numbers([0, 1000, 3]), Reply::Queued { left: second, rank: 3 }),
            (ACQUIRE, numbers([0, -1, 0]), Reply::Queued { left: None, rank: 0 }),
            (EXTEND, Value::Int(0), Reply::Extended { waiters: 0, number: None }),
            (EXTEND, numbers([2]), Reply::Extended { waiters: 2, number: None }),
            (EXTEND, numbers([-1]), Reply::NotOwner),
            (ADOPT, numbers([0]), Reply::Extended { waiters: 0, number: None }),
            (ADOPT, numbers([-1]), Reply::NotOwner),
            (YIELD, numbers([1]), Reply::Kept),
            (YIELD, numbers([0, 1000]), Reply::Yielded { left: second }),
            (YIELD, numbers([-1]), Reply::NotOwner),
            (RELEASE, Value::Int(1), Reply::Released),
            (RELEASE, numbers([-1]), Reply::NotOwner),
            (Verb::Raise { number: 7 }, Value::Int(0), Reply::Raised),
        ];
        for (verb, value, expected) in table {
            assert_eq!(answer(verb, &value), (Ok(expected), None), "{verb:?} {value:?}");
        }
    }

    #[test]
    fn ballot_reply_is_parsed_after_the_grant() {
        let taken = |number| Value::Array(vec![Value::Okay, Value::Int(number)]);
        let (seven, nine) = (Some(Number::Accepted(7)), Some(Number::Refused { largest: 9 }));
        let table = [
            (Verb::SetNx { ttl: TTL }, taken(7), Reply::Granted { smaller: false, number: seven }),
            (Verb::SetNx { ttl: TTL }, taken(-9), Reply::Granted { smaller: false, number: nine }),
            (Verb::SetNx { ttl: TTL }, taken(0), Reply::Granted { smaller: false, number: None }),
            (Verb::SetNx { ttl: TTL }, Value::Array(vec![Value::Nil, Value::Int(7)]), Reply::Taken),
            (ACQUIRE, numbers([1, 1, 7]), Reply::Granted { smaller: true, number: seven }),
            (EXTEND, numbers([2, 7]), Reply::Extended { waiters: 2, number: seven }),
            (EXTEND, numbers([0, -9]), Reply::Extended { waiters: 0, number: nine }),
            (EXTEND, numbers([0, 0]), Reply::Extended { waiters: 0, number: None }),
            (ADOPT, numbers([2, 7]), Reply::Extended { waiters: 2, number: seven }),
        ];
        for (verb, value, expected) in table {
            assert_eq!(answer(verb, &value), (Ok(expected), None), "{verb:?} {value:?}");
        }
    }

    #[test]
    fn refusal_text_omits_script_position() {
        let table = [
            ("OOM too much. script: 5a3f, on @user_script:7.", "OOM too much."),
            ("ERR Error running script (call to f_5a3f): @user_script:7: -OOM too much.", "OOM too much."),
            ("ERR Error running script (call to f_5a3f): @user_script: 7: NOPERM no", "NOPERM no"),
            ("NOPERM no permission to run this script: sorry", "NOPERM no permission to run this script: sorry"),
            ("ERR unknown command", "ERR unknown command"),
        ];
        for (answer, expected) in table {
            assert_eq!(without_script(answer), (expected, expected != answer));
        }
    }

    #[test]
    fn refusal_text_omits_command_arguments() {
        let table = [
            (
                "ERR unknown command 'SCRIPT', with args beginning with: 'LOAD' 'local key' ",
                "ERR unknown command 'SCRIPT'",
            ),
            (
                "ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `u`, `pw`, ",
                "ERR unknown command `HELLO`",
            ),
            ("ERR Error compiling script (new function): user_script:1: near 'x'", "ERR Error compiling script"),
            ("OOM too much.", "OOM too much."),
        ];
        for (answer, expected) in table {
            assert_eq!(without_arguments(answer), expected);
        }
    }

    #[test]
    fn key_with_data_is_not_reported_as_holder() {
        assert_eq!(answer(ACQUIRE, &numbers([-1])), (Err(NodeError::HoldsData), None));
    }

    #[test]
    fn token_time_and_server_time_are_parsed_from_the_reply_end() {
        let token = || Value::BulkString(b"00000000-0001-7002".into());
        let server = |text: &str| Value::BulkString(text.into());
        let (seen, time) = (Some(TokenTime::new(1, 2)), Some(Duration::from_micros(7_000_042)));
        let table = [
            (vec![token()], seen, None),
            (vec![server("@7.42")], None, time),
            (vec![server("@7.42"), token()], seen, time),
            (vec![server("@"), token()], seen, None),
            (vec![server("@7.x")], None, None),
            // A token that another program has made up.
            (vec![server("@7.42"), server("@@@@@@@@@@@@@@@@@@")], None, time),
            (vec![], None, None),
        ];
        for (times, seen, time) in table {
            let value = Value::Array([Value::Int(-1)].into_iter().chain(times).collect());
            assert_eq!(answer(EXTEND, &value), (Ok(Reply::NotOwner), seen), "{value:?}");
            assert_eq!(server_time(&value), time, "{value:?}");
        }
        assert_eq!(server_time(&Value::Int(0)), None);
    }

    #[test]
    fn malformed_reply_leaves_the_outcome_open() {
        let table = [
            (ACQUIRE, numbers([1])),
            (ACQUIRE, numbers([0, 5, -1])),
            (EXTEND, Value::Okay),
            (EXTEND, numbers([-2])),
            (EXTEND, numbers([0, i64::MAX])),
            (ACQUIRE, numbers([1, 0, 7, 7])),
            (YIELD, numbers([0])),
            (RELEASE, Value::Nil),
            (RELEASE, numbers([])),
        ];
        for (verb, value) in table {
            let (answer, _) = answer(verb, &value);
            assert!(matches!(answer, Err(NodeError::UnexpectedReply(_))), "{verb:?} {value:?}: {answer:?}");
        }
    }
}
