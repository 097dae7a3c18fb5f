//! What the nodes of a manager are like, as far as locks depend on it: the types that say so, and their texts.
//!
//! Asking does not belong here: each kind of node describes itself, and `manager::check` asks all of them.

mod persistence;

pub use self::persistence::Persistence;
use crate::error::NodeError;
use std::fmt;
use std::time::Duration;

/// What [`LockManager::check`](crate::LockManager::check) has found out: one [`NodeReport`] for each node.
///
/// `Display` is one line for each node, without secrets; [`warnings`](Self::warnings) are what somebody should look at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckReport {
    /// In the order in which the manager was given them.
    pub nodes: Vec<NodeReport>,
    /// How many of them must agree.
    pub needed: usize,
}

/// What one node is like. What its user may not ask is `None`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeReport {
    /// Its address: host and port, or the path of a socket.
    pub node: Box<str>,
    /// Why it does not count, if so: it cannot be reached, it is a replica, it abstains. The rest may still be known.
    pub error: Option<NodeError>,
    /// How long it took to answer; `None` when it did not.
    pub round_trip: Option<Duration>,
    /// The version of Redis.
    pub version: Option<Box<str>>,
    /// Another one after every start of the server.
    pub run_id: Option<Box<str>>,
    /// Whether it is a replica, which takes no locks.
    pub is_replica: Option<bool>,
    /// The `maxmemory-policy` that may remove locks when memory runs out; empty when none does.
    pub eviction: Option<Box<str>>,
    /// What is left of its data after a crash.
    pub persistence: Option<Persistence>,
    /// How its wall clock stands to ours.
    pub clock: Option<ClockOffset>,
    /// What it can do, and its user may.
    pub capabilities: Capabilities,
}

/// How the wall clock of a server stands to ours. It is known to half of the round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockOffset {
    /// Whether the server's is ahead; otherwise it is behind.
    pub is_ahead: bool,
    /// By how much.
    pub offset: Duration,
    /// The true offset is no further away than that.
    pub uncertainty: Duration,
}

/// What a node can do, and its user may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a permission or a feature of its own")]
#[non_exhaustive]
pub struct Capabilities {
    /// It has taken the scripts. Nothing works without.
    pub scripts: bool,
    /// It speaks RESP3, so that one connection serves commands and wake-ups.
    pub resp3: bool,
    /// Waiting callers are woken. Without, they ask again and again. `None` when that was not known in time.
    pub wake_ups: Option<bool>,
    /// It tells the time, so that steps of its clock are noticed.
    pub time: bool,
    /// It tells who it is, so that restarts are noticed.
    pub identity: bool,
}

/// A wall clock that is wrong by more is worth a warning: nothing depends on what it shows, but its next correction may
/// be a step. With less, clocks that are only measured badly would be warned about.
const WRONG_CLOCK: Duration = Duration::from_secs(1);

impl CheckReport {
    /// What somebody should look at, one line for each; empty when all is well.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let about = |node: &NodeReport| {
            let warnings = node.warnings();
            warnings.into_iter().map(|warning| format!("{}: {warning}", node.node)).collect::<Vec<_>>()
        };
        let votes = self.nodes.iter().filter(|node| node.error.is_none()).count();
        let few =
            format!("no lock can be obtained: {} of {} nodes needed, {votes} count", self.needed, self.nodes.len());
        let few = (votes < self.needed).then_some(few);
        self.nodes.iter().flat_map(about).chain(few).collect()
    }
}

impl NodeReport {
    /// As if nothing were known.
    pub(crate) fn unknown(node: &str) -> Self {
        Self {
            node: node.into(),
            error: None,
            round_trip: None,
            version: None,
            run_id: None,
            is_replica: None,
            eviction: None,
            persistence: None,
            clock: None,
            capabilities: Capabilities::default(),
        }
    }

    /// The embedded node, which can do everything and forgets nothing before its manager is gone.
    pub(crate) fn in_memory(node: &str) -> Self {
        Self {
            round_trip: Some(Duration::ZERO),
            version: Some("in memory".into()),
            is_replica: Some(false),
            eviction: Some("".into()),
            persistence: Some(Persistence::None),
            clock: Some(ClockOffset { is_ahead: false, offset: Duration::ZERO, uncertainty: Duration::ZERO }),
            capabilities: Capabilities { scripts: true, resp3: true, wake_ups: Some(true), time: true, identity: true },
            ..Self::unknown(node)
        }
    }

    /// What somebody should look at.
    fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<_> = self.error.iter().map(NodeError::to_string).collect();
        if self.round_trip.is_none() {
            return warnings;
        }
        if let Some(policy) = self.eviction.as_deref().filter(|policy| !policy.is_empty()) {
            warnings.push(format!("maxmemory-policy {policy} may remove locks: set it to noeviction"));
        }
        if let Some(clock) = self.clock.filter(|clock| clock.offset > WRONG_CLOCK + clock.uncertainty) {
            warnings.push(format!("its clock is {clock}: a correction in one step ends leases early"));
        }
        let Capabilities { wake_ups, time, identity, .. } = self.capabilities;
        let missing = [
            (wake_ups == Some(false), "may not publish or subscribe: waiting callers ask again and again"),
            (!time, "may not ask for the time: steps of its clock are not noticed"),
            (!identity, "may not ask who the server is: restarts are not noticed"),
        ];
        warnings
            .extend(missing.iter().filter(|(is_missing, _)| *is_missing).map(|(_, text)| format!("the user {text}")));
        warnings
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, node) in self.nodes.iter().enumerate() {
            let end = if i == 0 { "" } else { "\n" };
            write!(f, "{end}{node}")?;
        }
        Ok(())
    }
}

impl fmt::Display for NodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.node)?;
        if let Some(error) = &self.error {
            write!(f, "{error}")?;
        }
        let Some(round_trip) = self.round_trip else { return Ok(()) };
        if self.error.is_some() {
            f.write_str("; ")?;
        }
        write!(f, "Redis {}, ", self.version.as_deref().unwrap_or("of unknown version"))?;
        f.write_str(match self.is_replica {
            Some(true) => "replica",
            Some(false) => "master",
            None => "role unknown",
        })?;
        write!(f, ", answered in {round_trip:.1?}, ")?;
        match &self.persistence {
            Some(persistence) => write!(f, "{persistence}, ")?,
            None => f.write_str("persistence unknown, ")?,
        }
        match self.eviction.as_deref() {
            Some("") => f.write_str("no eviction, ")?,
            Some(policy) => write!(f, "eviction {policy}, ")?,
            None => f.write_str("eviction unknown, ")?,
        }
        match &self.clock {
            Some(clock) => write!(f, "clock {clock}, ")?,
            None => f.write_str("clock unknown, ")?,
        }
        write!(f, "{}", self.capabilities)
    }
}

impl fmt::Display for ClockOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.is_ahead { "ahead" } else { "behind" };
        write!(f, "{:.1?} {direction} (+-{:.1?})", self.offset, self.uncertainty)
    }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.resp3 { "RESP3" } else { "RESP2" })?;
        f.write_str(if self.scripts { ", scripts" } else { ", no scripts" })?;
        f.write_str(match self.wake_ups {
            Some(true) => ", wake-ups",
            Some(false) => ", no wake-ups",
            None => ", wake-ups unknown",
        })
    }
}
