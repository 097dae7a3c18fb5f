//! The scripts a node runs.

use super::queue_name::queue_name;
use crate::node::{Command, Verb};
use redis::Cmd;
use std::time::Duration;

/// A script: its source here, its digest as the server computed it.
#[derive(Debug)]
pub(super) struct Script {
    source: &'static str,
    digest: String,
}

/// Every script, loaded on one connection.
#[derive(Debug)]
pub(super) struct Scripts {
    acquire: Script,
    extend: Script,
    hand_over: Script,
    release: Script,
}

/// The files of a script, one after the other: a script cannot include another.
macro_rules! script {
    ($($part:literal),+) => { concat!($(include_str!(concat!("lua/", $part, ".lua"))),+) };
}

// What happens when nobody waits comes first: to make the functions that it does not need takes longer than all of it.
const ACQUIRE: &str = script!("names", "lock", "hand", "acquire");
const EXTEND: &str = script!("names", "extend_alone", "lock", "extend");
const YIELD: &str = script!("names", "lock", "hand", "yield");
const RELEASE: &str = script!("names", "release_alone", "lock", "hand", "release");

impl Scripts {
    /// In the order in which [`Scripts::loaded`] takes the digests.
    pub(super) const SOURCES: [&str; 4] = [ACQUIRE, EXTEND, YIELD, RELEASE];

    pub(super) fn loaded([acquire, extend, hand_over, release]: [String; 4]) -> Self {
        Self {
            acquire: Script { source: ACQUIRE, digest: acquire },
            extend: Script { source: EXTEND, digest: extend },
            hand_over: Script { source: YIELD, digest: hand_over },
            release: Script { source: RELEASE, digest: release },
        }
    }

    /// The script that executes `verb`, if one does.
    pub(super) const fn of(&self, verb: Verb) -> Option<&Script> {
        match verb {
            Verb::SetNx { .. } => None,
            Verb::Acquire { .. } => Some(&self.acquire),
            Verb::Extend { .. } => Some(&self.extend),
            Verb::Yield { .. } => Some(&self.hand_over),
            Verb::Release { .. } => Some(&self.release),
        }
    }
}

impl Script {
    /// The call by digest.
    pub(super) fn by_digest(&self, command: &Command) -> Cmd {
        call("EVALSHA", &self.digest, command)
    }

    /// The call by source, which also loads the script: for a server that has lost it.
    pub(super) fn by_source(&self, command: &Command) -> Cmd {
        call("EVAL", self.source, command)
    }
}

fn call(eval: &str, script: &str, command: &Command) -> Cmd {
    let (key, token) = (command.key(), command.token());
    let mut call = Cmd::with_capacity(8, 2 * key.len() + token.len() + script.len() + 48);
    call.arg(eval).arg(script).arg(2).arg(key).arg(queue_name(key)).arg(token);
    match command.verb {
        Verb::Acquire { ttl, claim } => call.arg(millis(ttl)).arg(millis(claim)),
        Verb::Extend { ttl } | Verb::SetNx { ttl } => call.arg(millis(ttl)),
        Verb::Yield { claim } | Verb::Release { claim } => call.arg(millis(claim)),
    };
    call
}

/// Redis takes an expiry in whole milliseconds; `checked_ttl` bounds it far below the end of `u64`.
pub(super) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}
