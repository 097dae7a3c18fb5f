//! The scripts a node runs.

use redis::{Cmd, cmd};

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
    pub(super) fn call(&self) -> Cmd {
        let mut call = cmd("EVALSHA");
        call.arg(&self.digest);
        call
    }

    /// The call by source, which also loads the script: for a server that has lost it.
    pub(super) fn call_by_source(&self) -> Cmd {
        let mut call = cmd("EVAL");
        call.arg(self.source);
        call
    }
}
