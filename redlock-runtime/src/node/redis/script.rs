//! The scripts a node runs.

use super::link::millis;
use crate::node::{Command, Verb};
use redis::Cmd;

/// A script: its source here, its digest as the server computed it.
#[derive(Debug)]
pub(super) struct Script {
    source: &'static str,
    digest: String,
}

/// Every script, loaded on one connection.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) extend: Script,
    pub(super) release: Script,
}

const EXTEND: &str = include_str!("extend.lua");
const RELEASE: &str = include_str!("release.lua");

impl Scripts {
    /// In the order in which [`Scripts::loaded`] takes the digests.
    pub(super) const SOURCES: [&str; 2] = [EXTEND, RELEASE];

    pub(super) fn loaded([extend, release]: [String; 2]) -> Self {
        Self { extend: Script { source: EXTEND, digest: extend }, release: Script { source: RELEASE, digest: release } }
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
    let mut call = Cmd::with_capacity(6, key.len() + token.len() + script.len() + 32);
    call.arg(eval).arg(script).arg(1).arg(key).arg(token);
    if let Verb::Extend { ttl } = command.verb {
        call.arg(millis(ttl));
    }
    call
}
