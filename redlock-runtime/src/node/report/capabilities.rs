//! Capabilities of a node and permissions of its user.

use std::fmt;

/// Capabilities of a node and permissions of its user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a permission or a feature of its own")]
#[non_exhaustive]
pub struct Capabilities {
    /// `true` if the node accepts the scripts of this library. Without them, no lock works.
    pub scripts: bool,
    /// `true` if the node stores the scripts. Otherwise each command carries the text of its script: some proxies do not forward
    /// `SCRIPT LOAD`.
    pub stores_scripts: bool,
    /// `true` if the node speaks RESP3, so that one connection serves commands and wake-ups.
    pub resp3: bool,
    /// `true` if waiters are woken by pub/sub messages. Otherwise they poll. `None` if this was not known in time.
    pub pub_sub: Option<bool>,
    /// `true` if the node reports its time.
    ///
    /// The time reveals steps of the node's clock, and lets a waiter start as soon as it receives the lock. The latter also needs
    /// [`resp3`](Self::resp3), and `CLIENT TRACKING` if restarted nodes abstain.
    pub time: bool,
    /// `true` if the node reports its identity, so that restarts are noticed.
    pub identity: bool,
    /// `true` if a lock was acquired, extended, waited for and released at the node. `None` if no lock was tried.
    pub locks: Option<bool>,
    /// `true` if a lock with a fencing number was acquired and released at the node. `None` if no lock was tried.
    pub fencing: Option<bool>,
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.resp3 { "RESP3" } else { "RESP2" })?;
        f.write_str(match (self.scripts, self.stores_scripts) {
            (true, true) => ", scripts",
            (true, false) => ", scripts by EVAL",
            (false, _) => ", no scripts",
        })?;
        f.write_str(match self.pub_sub {
            Some(true) => ", wake-ups",
            Some(false) => ", no wake-ups",
            None => ", wake-ups unknown",
        })?;
        f.write_str(match (self.locks, self.fencing) {
            (Some(true), Some(true)) => ", locks work",
            (Some(true), _) => ", locks work without fencing",
            (Some(false), _) => ", locks fail",
            (None, _) => ", no lock tried",
        })
    }
}
