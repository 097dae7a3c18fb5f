//! What a node can do, and its user may.

use std::fmt;

/// What a node can do, and its user may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a permission or a feature of its own")]
#[non_exhaustive]
pub struct Capabilities {
    /// It has taken the scripts. Nothing works without.
    pub scripts: bool,
    /// It stores the scripts. Without, each command brings the text of its script and is longer: some proxies do not pass
    /// `SCRIPT LOAD` on.
    pub stores_scripts: bool,
    /// It speaks RESP3, so that one connection serves commands and wake-ups.
    pub resp3: bool,
    /// Waiting callers are woken. Without, they ask again and again. `None` when that was not known in time.
    pub wake_ups: Option<bool>,
    /// It tells the time, so that steps of its clock are noticed, and that whoever is handed a lock begins without waiting for
    /// an answer. The latter needs [`resp3`](Self::resp3) as well, and `CLIENT TRACKING` where nodes abstain after restarts.
    pub time: bool,
    /// It tells who it is, so that restarts are noticed.
    pub identity: bool,
    /// A lock was taken, extended, waited for and given back there. `None` when that was not tried.
    pub locks: Option<bool>,
    /// The same with fencing. `None` when that was not tried.
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
        f.write_str(match self.wake_ups {
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
