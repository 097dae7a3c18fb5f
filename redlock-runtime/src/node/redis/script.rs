//! The scripts a node runs.

use super::side_key::{counter_name, queue_name};
use crate::protocol::command::{Command, Fence, Verb};
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
    adopt: Script,
    hand_over: Script,
    release: Script,
    /// Those of fenced locks. They are others, so that locks without fencing pay nothing for it.
    fenced: Fenced,
}

#[derive(Debug)]
struct Fenced {
    set_nx: Script,
    acquire: Script,
    extend: Script,
    adopt: Script,
}

/// The files of a script, one after the other: a script cannot include another.
macro_rules! script {
    ($($part:literal),+) => { concat!($(include_str!(concat!("lua/", $part, ".lua"))),+) };
}

/// A script whose answer another part looks at.
macro_rules! fenced {
    ($($part:literal),+; $end:literal) => {
        concat!(
            script!("names", "fence"),
            "local answer = (function()\n",
            script!($($part),+),
            "end)()\n",
            script!($end)
        )
    };
}

// What happens when nobody waits comes first: to make the functions that it does not need takes longer than all of it.
const ACQUIRE: &str = script!("names", "value", "lock", "hand", "acquire");
const EXTEND: &str = script!("names", "value", "extend_alone", "lock", "extend");
const ADOPT: &str = script!("names", "value", "adopt", "extend_alone", "lock", "extend");
const YIELD: &str = script!("names", "value", "lock", "hand", "yield");
const RELEASE: &str = script!("names", "value", "release_alone", "lock", "hand", "release");
const SET_NX_FENCED: &str = script!("names", "fence", "set_nx_fenced");
const ACQUIRE_FENCED: &str = fenced!("value", "lock", "hand", "acquire"; "acquire_fenced");
const EXTEND_FENCED: &str = fenced!("value", "lock", "extend"; "extend_fenced");
const ADOPT_FENCED: &str = fenced!("value", "adopt", "lock", "extend"; "extend_fenced");

impl Scripts {
    /// In the order in which [`Scripts::loaded`] asks for the digests.
    pub(super) const SOURCES: [&str; 9] =
        [ACQUIRE, EXTEND, ADOPT, YIELD, RELEASE, SET_NX_FENCED, ACQUIRE_FENCED, EXTEND_FENCED, ADOPT_FENCED];

    /// # Errors
    /// The first one of `digest`.
    pub(super) fn loaded<E>(mut digest: impl FnMut() -> Result<String, E>) -> Result<Self, E> {
        let mut script = |source| Ok(Script { source, digest: digest()? });
        Ok(Self {
            acquire: script(ACQUIRE)?,
            extend: script(EXTEND)?,
            adopt: script(ADOPT)?,
            hand_over: script(YIELD)?,
            release: script(RELEASE)?,
            fenced: Fenced {
                set_nx: script(SET_NX_FENCED)?,
                acquire: script(ACQUIRE_FENCED)?,
                extend: script(EXTEND_FENCED)?,
                adopt: script(ADOPT_FENCED)?,
            },
        })
    }

    /// The script that executes `command`, if one does.
    pub(super) const fn of(&self, command: &Command) -> Option<&Script> {
        let script = match (command.verb, command.fence) {
            (Verb::SetNx { .. }, None) => return None,
            (Verb::SetNx { .. }, Some(_)) => &self.fenced.set_nx,
            (Verb::Acquire { .. }, None) => &self.acquire,
            (Verb::Acquire { .. }, Some(_)) => &self.fenced.acquire,
            (Verb::Extend { .. }, None) => &self.extend,
            (Verb::Extend { .. }, Some(_)) => &self.fenced.extend,
            (Verb::Adopt { .. }, None) => &self.adopt,
            (Verb::Adopt { .. }, Some(_)) => &self.fenced.adopt,
            (Verb::Yield { .. }, _) => &self.hand_over,
            (Verb::Release { .. }, _) => &self.release,
        };
        Some(script)
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

/// The largest fencing number that the node has given to any lock. One key for all of them, without expiry.
const LARGEST_NUMBER: &str = "redlock:fence";

fn call(eval: &str, script: &str, command: &Command) -> Cmd {
    let (key, token) = (command.key(), command.token());
    let mut call = Cmd::with_capacity(8, 2 * key.len() + token.len() + script.len() + 48);
    call.arg(eval).arg(script).arg(if command.fence.is_some() { 4 } else { 2 }).arg(key).arg(queue_name(key));
    if command.fence.is_some() {
        call.arg(counter_name(key)).arg(LARGEST_NUMBER);
    }
    call.arg(token);
    match command.verb {
        Verb::Acquire { ttl, claim } => call.arg(millis(ttl)).arg(millis(claim)),
        Verb::Extend { ttl } | Verb::SetNx { ttl } => call.arg(millis(ttl)),
        Verb::Adopt { ttl } => call.arg(millis(ttl)).arg(command.from()),
        Verb::Yield { claim } | Verb::Release { claim } => call.arg(millis(claim)),
    };
    match command.fence {
        Some(Fence::Draw { above }) => call.arg("draw").arg(above),
        Some(Fence::Raise { to }) => call.arg("raise").arg(to),
        None => &mut call,
    };
    call
}

/// Redis takes an expiry in whole milliseconds; `checked_ttl` bounds it far below the end of `u64`.
pub(super) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}
