//! What the nodes of a manager are like, all together.

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
    /// How long a node is waited for now, in a call with the default `ttl`; see
    /// [`node_timeout`](crate::LockManagerBuilder::node_timeout).
    pub node_timeout: Duration,
    pub(crate) deployment: Deployment,
}

impl CheckReport {
    /// What somebody should look at and what to do about it, one line for each; empty when all is well.
    ///
    /// Some are of nodes that do not count, which [`LockManager::ready`](crate::LockManager::ready) fails for when too
    /// few are left. The others are risks: locks work now, and something can happen that breaks them.
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
        // The node in memory has no run, and is never restarted.
        let is_forgetful = |node: &&NodeReport| node.persistence == Some(Persistence::None) && node.run_id.is_some();
        let forgetful = self.nodes.iter().filter(is_forgetful).count();
        let windows = self.deployment.forgotten_windows(forgetful, self.nodes.len());
        let others = self.other_settings();
        self.nodes.iter().flat_map(about).chain(others).chain(wasted).chain(windows).chain(self.too_few()).collect()
    }

    /// Which settings of other processes differ, each once for all nodes.
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

    /// What follows when fewer nodes count than have to agree.
    fn too_few(&self) -> Option<String> {
        let votes = self.nodes.iter().filter(|node| node.error.is_none()).count();
        (votes < self.needed).then(|| {
            let Self { needed, nodes, .. } = self;
            format!(
                "no lock can be obtained before that is mended: {needed} of {} nodes needed, {votes} count",
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
