//! What one node is like, as far as locks depend on it.

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

/// What one node is like. What its user may not ask is `None`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeReport {
    /// Its address: host and port, or the path of a socket. Of a cluster, that of the first member in its URL.
    pub node: Box<str>,
    /// Why it does not count, if so: it cannot be reached, it is a replica or a lone member of a cluster, it abstains,
    /// it refuses what locks need, its answers come too late, a part of a cluster is missing. The rest may still be known.
    pub error: Option<NodeError>,
    /// How long it took to answer, at best; `None` when it did not.
    pub round_trip: Option<Duration>,
    /// Which program the server is, and its version: `Redis 7.0.15` or `Valkey 9.1.2`.
    pub version: Option<Box<str>>,
    /// Another one after every start of the server.
    pub run_id: Option<Box<str>>,
    /// Time since the process of the server has started.
    pub(crate) uptime: Option<Duration>,
    /// Whether it is a replica, which takes no locks.
    pub is_replica: Option<bool>,
    /// Whether other servers may take its place.
    pub replication: Option<Replication>,
    /// Whether it runs in cluster mode. Each member serves a part of the keys only, so that a manager is given the cluster
    /// and not one of them.
    pub is_cluster_member: Option<bool>,
    /// The `maxmemory-policy` that may remove locks when memory runs out; empty when none does.
    pub eviction: Option<Box<str>>,
    /// What is left of its data after a crash.
    pub persistence: Option<Persistence>,
    /// How its wall clock stands to ours.
    pub clock: Option<ClockOffset>,
    /// What it can do, and its user may.
    pub capabilities: Capabilities,
    /// What locks need and it refuses.
    pub refusals: Vec<Refusal>,
    /// The masters, if it is a cluster; empty otherwise. What is said of the node as a whole was asked at the master that has
    /// the lock which was tried.
    pub members: Vec<ClusterMember>,
    /// The name of the lock that is tried there.
    pub(crate) trial_name: Box<str>,
    /// Addresses of the servers behind the name of the node, if they are several.
    pub(crate) servers_of_name: Vec<Box<str>>,
    /// Settings that other processes have left there, if they differ.
    pub(crate) other_settings: Vec<OtherSettings>,
    /// Number of clients that subscribe to patterns which match the channels of locks.
    pub(crate) pattern_subscribers: u64,
    /// Whether the user may use that name: if not, nothing can be said of others.
    pub(crate) may_use_name: bool,
}

/// A master of a cluster.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterMember {
    /// What it is like by itself. No lock was tried there, except at one of them.
    pub report: NodeReport,
    /// Its slots, as in `0-5460 10923`.
    pub slots: Box<str>,
    /// How many replicas the cluster knows of it.
    pub replicas: usize,
}

/// A wall clock that is wrong by more is worth a warning: nothing depends on what it shows, but its next correction may
/// be a step. With less, clocks that are only measured badly would be warned about.
const WRONG_CLOCK: Duration = Duration::from_secs(1);

/// What a member of a cluster is no use for, when it serves a part of the keys only.
pub(crate) const CLUSTER_MEMBER: &str = "is a member of a cluster, which serves a part of the keys: write redis+cluster:// in place of redis://, or rediss+cluster:// in place of rediss://";

impl NodeReport {
    /// As if nothing were known.
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

    /// The embedded node, which can do everything and forgets nothing before its manager is gone.
    pub(crate) fn in_memory(node: &str) -> Self {
        Self {
            round_trip: Some(Duration::ZERO),
            version: Some("in memory".into()),
            is_replica: Some(false),
            replication: Some(Replication { replicas: 0, least_to_write: None }),
            is_cluster_member: Some(false),
            eviction: Some("".into()),
            persistence: Some(Persistence::None),
            clock: Some(ClockOffset { is_ahead: false, offset: Duration::ZERO, uncertainty: Duration::ZERO }),
            capabilities: Capabilities {
                scripts: true,
                stores_scripts: true,
                resp3: true,
                wake_ups: Some(true),
                time: true,
                identity: true,
                locks: None,
                fencing: None,
            },
            ..Self::unknown(node)
        }
    }

    /// The node does not count when what is known of it stands in the way of locks.
    pub(crate) fn weigh(&mut self, deployment: &Deployment) {
        let too_far = || self.round_trip.and_then(|round_trip| deployment.too_far(round_trip));
        if self.error.is_none() {
            self.error = self.refused_locks().or_else(too_far);
        }
    }

    /// Whether a lock is worth trying: nothing is known that stands in its way.
    pub(crate) const fn may_be_tried(&self) -> bool {
        self.error.is_none() && self.round_trip.is_some() && self.may_use_name
    }

    /// Why no lock works there, when the server refuses what locks need.
    fn refused_locks(&self) -> Option<NodeError> {
        let refused = self.refusals.iter().filter(|refusal| refusal.purpose == Purpose::Locks);
        let passing =
            refused.map(|refusal| NodeError::Refused(refusal.answer.clone().into())).find(NodeError::is_transient);
        if passing.is_some() {
            return passing;
        }
        text(&self.refusals, Purpose::Locks, &self.trial_name).map(|text| NodeError::Unfit(text.into()))
    }

    /// A lock was tried. `hands_over` is whether the node wakes the ones that wait for locks.
    pub(crate) fn tried(&mut self, outcome: Outcome, hands_over: bool) {
        let Outcome { failed, failed_fenced, is_handed_over } = outcome;
        self.capabilities.locks = Some(failed.is_none());
        let refuses_fences = self.refusals.iter().any(|refusal| refusal.purpose == Purpose::Fencing);
        self.capabilities.fencing = Some(failed.is_none() && failed_fenced.is_none() && !refuses_fences);
        if failed.is_none() && hands_over && !is_handed_over {
            self.capabilities.wake_ups = self.capabilities.wake_ups.map(|_| false);
        }
        if let Some((step, answer)) = failed {
            self.error = Some(fault(step, answer));
        }
        if let Some((step, Err(NodeError::Refused(answer)))) = failed_fenced {
            self.refusals.push(Refusal::new(&step.to_string(), Purpose::Fencing, &answer));
        }
    }

    /// What somebody should look at.
    pub(super) fn warnings(&self, deployment: &Deployment) -> Vec<String> {
        let error = self.error.as_ref().map(|error| match remedy(error) {
            Some(remedy) => format!("{error}: {remedy}"),
            None => error.to_string(),
        });
        let mut warnings: Vec<_> = error.into_iter().chain(self.dangers(deployment)).collect();
        // What is so at all members is said once.
        let of_members = self.members.iter().flat_map(|member| member.warnings(deployment));
        let others: Vec<_> = of_members.filter(|(warning, _)| !warnings.contains(warning)).collect();
        warnings.extend(others.into_iter().map(|(warning, member)| format!("member {member}: {warning}")));
        warnings
    }

    /// What can happen, or is missing, although the node counts.
    fn dangers(&self, deployment: &Deployment) -> Vec<String> {
        let Some(round_trip) = self.round_trip else { return Vec::new() };
        let risks = self.untried().into_iter().chain(self.missing()).chain(self.risks());
        // What has no run is not restarted: the node in memory.
        let persistence = self.persistence.as_ref().filter(|_| self.run_id.is_some());
        let amnesia = persistence.and_then(|persistence| deployment.amnesia(persistence));
        // A node that abstains is reported as that.
        let counts = !matches!(self.error, Some(NodeError::Abstains(_)));
        let young = self.uptime.filter(|_| counts).and_then(|uptime| deployment.restarted(uptime));
        risks.chain(deployment.nearly_too_far(round_trip)).chain(amnesia).chain(young).collect()
    }

    /// That no lock could be tried, when the user may not use the name.
    fn untried(&self) -> Option<String> {
        let pattern = pattern(&self.trial_name);
        (!self.may_use_name).then(|| {
            format!(
                "no lock could be tried, because the user may not use its name: grant it `~{pattern} ~{{{pattern}`, or \
                 give the manager a `namespace` whose keys it may use"
            )
        })
    }

    /// What the user or the server lacks that some locks need, or that makes them safer.
    fn missing(&self) -> impl Iterator<Item = String> {
        let Capabilities { wake_ups, time, identity, fencing, locks, .. } = self.capabilities;
        let [publishes, fences, shares, braces, permits, scripts, moving] = [
            Purpose::WakeUps,
            Purpose::Fencing,
            Purpose::Sharing,
            Purpose::Braces,
            Purpose::BracePermits,
            Purpose::LostScripts,
            Purpose::MovingSlots,
        ]
        .map(|purpose| text(&self.refusals, purpose, &self.trial_name));
        let listens = (wake_ups == Some(false) && publishes.is_none()).then(|| {
            format!(
                "waiting callers are not woken and ask again and again: grant the user `{} +publish +subscribe`",
                channels(&self.trial_name)
            )
        });
        let no_fences = (fencing == Some(false) && locks == Some(true) && fences.is_none())
            .then(|| format!("fenced locks fail: see what is stored in the keys {}", registers(&self.trial_name)));
        let time = (!time).then(|| "the user may not ask for the time, so that calls with `once_per` fail, steps of the server's clock are not noticed, and fencing numbers depend on the clocks of the processes: grant it `+time`".to_owned());
        let identity = (!identity).then(|| {
            "the user may not ask who the server is, so that restarts are not noticed: grant it `+info`".to_owned()
        });
        [publishes, listens, fences, no_fences, shares, braces, permits, scripts, moving, time, identity]
            .into_iter()
            .flatten()
    }

    /// What can happen that breaks locks.
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

/// Why a node does not count where a lock was tried in vain.
fn fault(step: Step, answer: Answer) -> NodeError {
    match answer {
        Ok(reply) => NodeError::Unfit(
            format!("{step} was answered {reply:?}: see whether it is a Redis server, and who else changes its keys")
                .into(),
        ),
        Err(error @ NodeError::Refused(_)) if error.is_transient() => error,
        Err(NodeError::Refused(answer)) => {
            let refusal = Refusal::new(&step.to_string(), Purpose::Locks, &answer);
            let text = text(&[refusal], Purpose::Locks, "");
            NodeError::Unfit(text.unwrap_or_default().into())
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
    /// What somebody should look at, and at which member.
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

/// The members of a cluster, behind what is said of it.
fn listed(members: &[ClusterMember]) -> String {
    let members: Vec<_> = members.iter().map(ToString::to_string).collect();
    if members.is_empty() { String::new() } else { format!("; members: {}", members.join("; ")) }
}
