//! Report about one node.

use super::capabilities::Capabilities;
use super::clock_offset::ClockOffset;
use super::deployment::Deployment;
use super::persistence::Persistence;
use super::refusal::{Purpose, Refusal, channels, pattern, registers, text};
use super::remedy::remedy;
use super::replication::Replication;
use crate::error::NodeError;
use crate::node::shared_settings::OtherSettings;
use crate::protocol::command::Answer;
use crate::protocol::trial::{Outcome, Step};
use crate::text::SingleLine;
use std::fmt;
use std::time::Duration;

/// Report about one node. Facts that the user may not query are `None`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeReport {
    /// Address of the node: host and port, or the path of a socket. For a cluster, the first member in its URL.
    pub node: Box<str>,
    /// Reason why the node has no vote. The other fields may still be known.
    ///
    /// Reasons:
    ///
    /// - The node is unreachable, a replica, or a single member of a cluster.
    /// - It restarted recently.
    /// - It refuses a command that locks need.
    /// - Its replies come too late.
    /// - A part of a cluster is missing.
    pub error: Option<NodeError>,
    /// Shortest measured round trip. `None` if the node did not answer.
    pub round_trip: Option<Duration>,
    /// Name and version of the server, such as `Redis 7.0.15` or `Valkey 9.1.2`.
    pub version: Option<Box<str>>,
    /// Identifier of the run, which changes with every start of the server.
    pub run_id: Option<Box<str>>,
    /// Time since the process of the server has started.
    pub(crate) uptime: Option<Duration>,
    /// `true` if the node is a replica. A replica grants no locks.
    pub is_replica: Option<bool>,
    /// Replicas of the node, which may replace it in a failover.
    pub replication: Option<Replication>,
    /// `true` if the server runs in cluster mode. A member serves a part of the keys, so a manager needs the URL of the cluster.
    pub is_cluster_member: Option<bool>,
    /// `maxmemory-policy`, if it may remove locks when memory runs out. Empty if it does not.
    pub eviction: Option<Box<str>>,
    /// Data that survives a crash of the server.
    pub persistence: Option<Persistence>,
    /// Difference between the wall clocks of the server and this process.
    pub clock: Option<ClockOffset>,
    /// Capabilities of the node and permissions of its user.
    pub capabilities: Capabilities,
    /// Commands that locks need and the node refuses.
    pub refusals: Vec<Refusal>,
    /// Masters of a cluster; empty for other nodes. The other fields of the report then describe the master that has the key of the
    /// tried lock.
    pub members: Vec<ClusterMember>,
    /// Key of the lock that is tried at the node.
    pub(crate) trial_name: Box<str>,
    /// Addresses of the servers behind the name of the node, if they are several.
    pub(crate) servers_of_name: Vec<Box<str>>,
    /// Settings that other processes have left there, if they differ.
    pub(crate) other_settings: Vec<OtherSettings>,
    /// Number of clients that subscribe to patterns which match the channels of locks.
    pub(crate) pattern_subscribers: u64,
    /// `true` if the user may use the key of the tried lock. If not, other keys may still be permitted.
    pub(crate) may_use_name: bool,
}

/// Master of a cluster.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterMember {
    /// Report about this master. A lock is tried only at one of the masters.
    pub report: NodeReport,
    /// Slots of the master, such as `0-5460 10923`.
    pub slots: Box<str>,
    /// Number of replicas, as the cluster knows them.
    pub replicas: usize,
}

/// Difference of wall clocks that is worth a warning: 1 s. No lock depends on the time of a server, but the next correction may be a step.
/// Too small: warnings about clocks that are only measured badly. Too large: no warning before a step that ends leases early.
const WRONG_CLOCK: Duration = Duration::from_secs(1);

/// Error for a single member of a cluster, which serves only a part of the keys.
pub(crate) const CLUSTER_MEMBER: &str = "is a member of a cluster, which serves a part of the keys: write redis+cluster:// instead of redis://, or rediss+cluster:// instead of rediss://";

impl NodeReport {
    /// Returns a report without any facts.
    pub(crate) fn unknown(node: &str) -> Self {
        Self {
            node: node.into(),
            error: None,
            round_trip: None,
            version: None,
            run_id: None,
            uptime: None,
            is_replica: None,
            replication: None,
            is_cluster_member: None,
            eviction: None,
            persistence: None,
            clock: None,
            capabilities: Capabilities::default(),
            refusals: Vec::new(),
            members: Vec::new(),
            trial_name: "".into(),
            servers_of_name: Vec::new(),
            other_settings: Vec::new(),
            pattern_subscribers: 0,
            may_use_name: true,
        }
    }

    /// Returns the report about the in-memory node, which has all capabilities.
    pub(crate) fn in_memory(node: &str) -> Self {
        Self {
            round_trip: Some(Duration::ZERO),
            version: Some("in memory".into()),
            is_replica: Some(false),
            replication: Some(Replication { replicas: 0, min_replicas_to_write: None }),
            is_cluster_member: Some(false),
            eviction: Some("".into()),
            persistence: Some(Persistence::None),
            clock: Some(ClockOffset { is_ahead: false, offset: Duration::ZERO, uncertainty: Duration::ZERO }),
            capabilities: Capabilities {
                scripts: true,
                stores_scripts: true,
                resp3: true,
                pub_sub: Some(true),
                time: true,
                identity: true,
                locks: None,
                fencing: None,
            },
            ..Self::unknown(node)
        }
    }

    /// Sets the error if a known fact prevents locks.
    pub(crate) fn set_deployment_error(&mut self, deployment: &Deployment) {
        let too_far = || self.round_trip.and_then(|round_trip| deployment.too_far(round_trip));
        if self.error.is_none() {
            self.error = self.refused_locks().or_else(too_far);
        }
    }

    /// Returns `true` if a lock should be tried: no known fact prevents it.
    pub(crate) const fn may_be_tried(&self) -> bool {
        self.error.is_none() && self.round_trip.is_some() && self.may_use_name
    }

    /// Returns the error if the server refuses a command that every lock needs.
    fn refused_locks(&self) -> Option<NodeError> {
        let refused = self.refusals.iter().filter(|refusal| refusal.purpose == Purpose::Locks);
        let passing =
            refused.map(|refusal| NodeError::Refused(refusal.answer.clone().into())).find(NodeError::is_transient);
        if passing.is_some() {
            return passing;
        }
        text(&self.refusals, Purpose::Locks, &self.trial_name).map(|text| NodeError::Unsupported(text.into()))
    }

    /// Records the outcome of a tried lock. `hands_over` is `true` if the node wakes waiters.
    pub(crate) fn tried(&mut self, outcome: Outcome, hands_over: bool) {
        let Outcome { failed, failed_fenced, is_handed_over } = outcome;
        self.capabilities.locks = Some(failed.is_none());
        let refuses_fences = self.refusals.iter().any(|refusal| refusal.purpose == Purpose::Fencing);
        self.capabilities.fencing = Some(failed.is_none() && failed_fenced.is_none() && !refuses_fences);
        if failed.is_none() && hands_over && !is_handed_over {
            self.capabilities.pub_sub = self.capabilities.pub_sub.map(|_| false);
        }
        if let Some((step, answer)) = failed {
            self.error = Some(fault(step, answer));
        }
        if let Some((step, Err(NodeError::Refused(answer)))) = failed_fenced {
            self.refusals.push(Refusal::new(&step.to_string(), Purpose::Fencing, &answer));
        }
    }

    /// Returns one line for each problem.
    pub(super) fn warnings(&self, deployment: &Deployment) -> Vec<String> {
        let error = self.error.as_ref().map(|error| match remedy(error) {
            Some(remedy) => format!("{error}: {remedy}"),
            None => error.to_string(),
        });
        let mut warnings: Vec<_> = error.into_iter().chain(self.dangers(deployment)).collect();
        // A problem of the node is not repeated for its members.
        let of_members = self.members.iter().flat_map(|member| member.warnings(deployment));
        let others: Vec<_> = of_members.filter(|(warning, _)| !warnings.contains(warning)).collect();
        warnings.extend(others.into_iter().map(|(warning, member)| format!("member {member}: {warning}")));
        warnings
    }

    /// Returns the risks and missing permissions of a node with a vote.
    fn dangers(&self, deployment: &Deployment) -> Vec<String> {
        let Some(round_trip) = self.round_trip else { return Vec::new() };
        let risks = self.untried().into_iter().chain(self.missing()).chain(self.risks());
        // The in-memory node has no run id, and is never restarted.
        let persistence = self.persistence.as_ref().filter(|_| self.run_id.is_some());
        let amnesia = persistence.and_then(|persistence| deployment.amnesia(persistence));
        // A node without a vote because of its restart has this as its error.
        let counts = !matches!(self.error, Some(NodeError::RecentlyRestarted(_)));
        let young = self.uptime.filter(|_| counts).and_then(|uptime| deployment.restarted(uptime));
        risks.chain(deployment.nearly_too_far(round_trip)).chain(amnesia).chain(young).collect()
    }

    /// Returns a warning if no lock could be tried, because the user may not use its key.
    fn untried(&self) -> Option<String> {
        let pattern = pattern(&self.trial_name);
        (!self.may_use_name).then(|| {
            format!(
                "no lock could be tried, because the user may not use its name: grant it `~{pattern} ~{{{pattern}`, or \
                 give the manager a `namespace` whose keys it may use"
            )
        })
    }

    /// Returns the missing permissions and capabilities that some locks need, or that make locks safer.
    fn missing(&self) -> impl Iterator<Item = String> {
        let Capabilities { pub_sub, identity, fencing, locks, .. } = self.capabilities;
        let [some, publishes, fences, braces, permits, scripts, moving] = [
            Purpose::SomeLocks,
            Purpose::WakeUps,
            Purpose::Fencing,
            Purpose::Braces,
            Purpose::BracePermits,
            Purpose::LostScripts,
            Purpose::MovingSlots,
        ]
        .map(|purpose| text(&self.refusals, purpose, &self.trial_name));
        let listens = (pub_sub == Some(false) && publishes.is_none()).then(|| {
            format!(
                "waiting callers are not woken and ask again and again: grant the user `{} +publish +subscribe`",
                channels(&self.trial_name)
            )
        });
        let no_fences = (fencing == Some(false) && locks == Some(true) && fences.is_none())
            .then(|| format!("fenced locks fail: see what is stored in the keys {}", registers(&self.trial_name)));
        let identity = (!identity).then(|| {
            "the user may not ask who the server is, so that restarts are not noticed: grant it `+info`".to_owned()
        });
        [some, publishes, listens, fences, no_fences, braces, permits, scripts, moving, identity].into_iter().flatten()
    }

    /// Returns the events that can break locks later.
    fn risks(&self) -> impl Iterator<Item = String> {
        let eviction = self.eviction.as_deref().filter(|policy| !policy.is_empty());
        let eviction =
            eviction.map(|policy| format!("maxmemory-policy {policy} may remove locks: set it to noeviction"));
        let clock = self.clock.filter(|clock| clock.offset > WRONG_CLOCK + clock.uncertainty);
        let clock = clock.map(|clock| {
            format!(
                "its clock is {clock}: a correction in one step ends leases early: let it be slewed to the right time"
            )
        });
        let replication = self.replication.and_then(Replication::risk);
        let names = (!self.servers_of_name.is_empty()).then(|| {
            format!(
                "its name leads to {} different servers, at {}: processes use either of them, and two callers can hold one \
                 lock. Give each server a name of its own",
                self.servers_of_name.len(),
                self.servers_of_name.join(" and ")
            )
        });
        let patterns = (self.pattern_subscribers > 0).then(|| {
            "other clients subscribe to patterns that match the channels of locks (PSUBSCRIBE): each wake-up needs a second message, and a waiter \
             whose process has ended may delay the next one by a second. Subscribe to other patterns"
                .to_owned()
        });
        [names, replication, eviction, clock, patterns].into_iter().flatten()
    }
}

/// Returns the error of a node at which the tried lock failed.
fn fault(step: Step, answer: Answer) -> NodeError {
    match answer {
        Ok(reply) => NodeError::Unsupported(
            format!("{step} was answered {reply:?}: see whether it is a Redis server, and who else changes its keys")
                .into(),
        ),
        Err(error @ NodeError::Refused(_)) if error.is_transient() => error,
        Err(NodeError::Refused(answer)) => {
            let refusal = Refusal::new(&step.to_string(), Purpose::Locks, &answer);
            let text = text(&[refusal], Purpose::Locks, "");
            NodeError::Unsupported(text.unwrap_or_default().into())
        }
        Err(error) => error,
    }
}

impl fmt::Display for NodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", SingleLine(&self.node))?;
        if let Some(error) = &self.error {
            write!(f, "{error}")?;
        }
        let Some(round_trip) = self.round_trip else { return Ok(()) };
        if self.error.is_some() {
            f.write_str("; ")?;
        }
        write!(f, "{}, ", SingleLine(self.version.as_deref().unwrap_or("unknown version")))?;
        match (self.is_replica, self.replication) {
            (Some(true), _) => f.write_str("replica")?,
            (Some(false), Some(replication)) => write!(f, "{replication}")?,
            (Some(false), None) => f.write_str("master")?,
            (None, _) => f.write_str("role unknown")?,
        }
        if self.is_cluster_member == Some(true) {
            f.write_str(" in a cluster")?;
        }
        write!(f, ", answered in {round_trip:.1?}, ")?;
        match &self.persistence {
            Some(persistence) => write!(f, "{persistence}, ")?,
            None => f.write_str("persistence unknown, ")?,
        }
        match self.eviction.as_deref() {
            Some("") => f.write_str("no eviction, ")?,
            Some(policy) => write!(f, "eviction {}, ", SingleLine(policy))?,
            None => f.write_str("eviction unknown, ")?,
        }
        match &self.clock {
            Some(clock) => write!(f, "clock {clock}, ")?,
            None => f.write_str("clock unknown, ")?,
        }
        write!(f, "{}{}", self.capabilities, listed(&self.members))
    }
}

impl ClusterMember {
    /// Returns one line for each problem, with the address of the member.
    fn warnings(&self, deployment: &Deployment) -> impl Iterator<Item = (String, &str)> {
        self.report.warnings(deployment).into_iter().map(|warning| (warning, &*self.report.node))
    }
}

impl fmt::Display for ClusterMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, slots, replicas } = self;
        let ending = if *replicas == 1 { "" } else { "s" };
        write!(f, "{} with slots {slots} and {replicas} replica{ending}", SingleLine(&report.node))?;
        report.error.as_ref().map_or(Ok(()), |error| write!(f, ", which {error}"))
    }
}

/// Returns the members of a cluster, to follow the line about it.
fn listed(members: &[ClusterMember]) -> String {
    let members: Vec<_> = members.iter().map(ToString::to_string).collect();
    if members.is_empty() { String::new() } else { format!("; members: {}", members.join("; ")) }
}
