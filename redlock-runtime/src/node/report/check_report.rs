//! Report about all nodes of a manager.

use super::deployment::Deployment;
use super::node_report::NodeReport;
use super::persistence::Persistence;
use crate::node::shared_settings::OtherSettings;
use crate::text::SingleLine;
use std::fmt;
use std::time::Duration;

/// Maximum number of other settings that warnings show. Too small: during a deploy, one of two differences is missing. Too large: another
/// program that writes to the servers fills the report.
const MOST_OTHERS: usize = 3;

/// Report about all nodes, as [`LockManager::check`](crate::LockManager::check) returns it.
///
/// `Display` writes one line for each node, without secrets. [`warnings`](Self::warnings) lists what should be fixed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckReport {
    /// Report about each node, in the order of the manager's configuration.
    pub nodes: Vec<NodeReport>,
    /// Number of nodes that form a majority.
    pub needed: usize,
    /// Present timeout for a reply of a node, in a call with the default `ttl`. See
    /// [`node_timeout`](crate::LockManagerBuilder::node_timeout).
    pub node_timeout: Duration,
    pub(crate) deployment: Deployment,
}

impl CheckReport {
    /// Returns one line for each problem, with its remedy. Empty if there are none.
    ///
    /// A warning is about a node without a vote, or about a risk. [`LockManager::ready`](crate::LockManager::ready) fails if too few nodes
    /// have a vote. A risk does not stop locks now, but something can happen that breaks them.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let about = |node: &NodeReport| {
            let warnings = node.warnings(&self.deployment);
            warnings
                .into_iter()
                .map(|warning| SingleLine(format!("{}: {warning}", node.node)).to_string())
                .collect::<Vec<_>>()
        };
        let wasted = self.deployment.wasted_node(self.nodes.len());
        // The in-memory node has no run id, and is never restarted.
        let is_forgetful = |node: &&NodeReport| node.persistence == Some(Persistence::None) && node.run_id.is_some();
        let forgetful = self.nodes.iter().filter(is_forgetful).count();
        let windows = self.deployment.forgotten_windows(forgetful, self.nodes.len());
        let others = self.other_settings();
        self.nodes.iter().flat_map(about).chain(others).chain(wasted).chain(windows).chain(self.too_few()).collect()
    }

    /// Returns a warning for each different setting of other processes, once for all nodes.
    fn other_settings(&self) -> Vec<String> {
        let mut others: Vec<_> = self.nodes.iter().flat_map(|node| &node.other_settings).collect();
        others.sort_unstable();
        others.dedup();
        let warning = |OtherSettings { names, theirs, ours }: &OtherSettings| {
            let text = format!(
                "other processes with the same locks have other settings ({names}: theirs are {theirs}, and ours are {ours}), so that two \
                 callers can hold one lock: see \"Changing the list of servers\""
            );
            SingleLine(text).to_string()
        };
        others.into_iter().take(MOST_OTHERS).map(warning).collect()
    }

    /// Returns a warning if fewer nodes have a vote than are needed.
    fn too_few(&self) -> Option<String> {
        let votes = self.nodes.iter().filter(|node| node.error.is_none()).count();
        (votes < self.needed).then(|| {
            let Self { needed, nodes, .. } = self;
            format!(
                "no lock can be obtained until this is fixed: {needed} of {} nodes needed, {votes} count",
                nodes.len()
            )
        })
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
