//! One master of a cluster, as part of a node.

use super::deployment::Deployment;
use super::node_report::NodeReport;
use std::fmt;

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

impl ClusterMember {
    /// What somebody should look at, and at which member.
    pub(super) fn warnings(&self, deployment: &Deployment) -> impl Iterator<Item = (String, &str)> {
        self.report.warnings(deployment).into_iter().map(|warning| (warning, &*self.report.node))
    }
}

impl fmt::Display for ClusterMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, slots, replicas } = self;
        let ending = if *replicas == 1 { "" } else { "s" };
        write!(f, "{} with slots {slots} and {replicas} replica{ending}", report.node)?;
        report.error.as_ref().map_or(Ok(()), |error| write!(f, ", which {error}"))
    }
}

/// The members of a cluster, behind what is said of it.
pub(super) fn listed(members: &[ClusterMember]) -> String {
    let members: Vec<_> = members.iter().map(ToString::to_string).collect();
    if members.is_empty() { String::new() } else { format!("; members: {}", members.join("; ")) }
}
