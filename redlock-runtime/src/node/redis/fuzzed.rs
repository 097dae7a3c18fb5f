//! Entry points of the fuzz targets (`fuzz/`) for data from the wire.
#![allow(clippy::indexing_slicing, clippy::panic, reason = "a panic is what a fuzzer finds")]

use super::{answer, url};
use crate::protocol::command::{Claim, Notice, Number, Reply, Verb, Wakeup};
use crate::time::ballot_clock::Ballot;
use std::time::Duration;

/// Decodes the reply of a server to a command, from the bytes of its connection.
pub(crate) fn answer(verb: u8, bytes: &[u8]) {
    let ttl = Duration::from_secs(10);
    let verbs = [
        Verb::SetNx { ttl },
        Verb::Acquire { ttl, claim: ttl, holds: false },
        Verb::Extend { ttl },
        Verb::Renew { ttl },
        Verb::Keep { ttl },
        Verb::Adopt { ttl },
        Verb::Yield { claim: ttl },
        Verb::Release { claim: ttl },
        Verb::Revoke,
        Verb::Enter { ttl, turn: ttl },
        Verb::Raise { number: 7 },
    ];
    let verb = verbs[usize::from(verb) % verbs.len()];
    let value = match redis::parse_redis_value(bytes) {
        Ok(value) => value,
        Err(error) => return drop(answer::refused(&error)),
    };
    let (reply, _) = answer::answer(verb, &value);
    let _ = (answer::server_time(&value), answer::occupant(&value));
    match reply {
        Ok(Reply::Granted { number, .. }) => {
            assert!(matches!(verb, Verb::SetNx { .. } | Verb::Acquire { .. }), "{verb:?} {value:?}");
            check_number(number);
        }
        Ok(Reply::Extended { number, .. }) => {
            assert!(verb.is_extension(), "{verb:?} {value:?}");
            check_number(number);
        }
        _ => {}
    }
}

/// Checks that a number is one that a ballot can have.
fn check_number(number: Option<Number>) {
    if let Some(Number::Accepted(number)) = number {
        assert!(Ballot::NUMBERS.contains(&number), "{number}");
    }
}

/// Parses the URL of a node, and compares the result with another parser.
pub(crate) fn url_parts(text: &str) {
    url::compare_with_reference(text);
}

/// Decodes a message on the channel of a manager: the decoded wake-up has the text of the message.
pub(crate) fn wakeup(payload: &[u8]) {
    let Some(wakeup) = answer::wakeup_in(payload) else { return };
    let (token, key) = (&wakeup.subject.token, wakeup.subject.key.name());
    let text = match &wakeup.notice {
        Notice::Granted => format!("granted {token} {key}"),
        Notice::Busy => format!("busy {token} {key}"),
        Notice::Free => format!("free {token} {key}"),
        Notice::Freed => format!("freed {token} {key}"),
        Notice::Stopped => format!("stopped {token} {key}"),
        Notice::Contended { by } => format!("contended {token} {by} {key}"),
        Notice::Wanted { by } => format!("wanted {token} {by} {key}"),
        Notice::Revoked { by } => format!("revoked {token} {by} {key}"),
        Notice::Claimed(Claim { length, begun }) => {
            let (seconds, micros) = (begun.as_secs(), begun.subsec_micros());
            format!("claimed {} {seconds}.{micros} {token} {key}", length.as_millis())
        }
        Notice::Proven(_) => panic!("no node says that: {wakeup:?}"),
    };
    assert_eq!(Wakeup::parse(&text), Some(wakeup), "{text}");
}
