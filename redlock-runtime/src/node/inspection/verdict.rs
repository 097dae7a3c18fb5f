//! What the nodes say of a key all together.

use super::holder::Holder;
use super::node_inspection::NodeInspection;
use super::owner::{Owner, spoken};
use crate::lock::LockKey;
use crate::protocol::fencing_token::FencingToken;
use std::fmt;
use std::time::Duration;

/// What [`LockManager::inspect`](crate::LockManager::inspect) has found out about a key.
///
/// `Display` is what somebody wants to read who was woken by an alarm: the word of the majority, then a line for each node
/// and for each process that waits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// What was asked for.
    pub key: LockKey,
    /// In the order in which the manager was given them.
    pub nodes: Vec<NodeInspection>,
    /// How many of them must agree.
    pub needed: usize,
}

impl Inspection {
    /// What has the key, by the word of so many nodes as must agree. `None` when they do not, because somebody is just taking
    /// it, because it has just ended at some of them, or because too few answer.
    #[must_use]
    pub fn holder(&self) -> Option<&Holder> {
        let counted = || self.nodes.iter().filter(|node| node.error.is_none()).map(|node| &node.holder);
        let is_agreed = |holder: &&Holder| {
            **holder != Holder::Unknown && counted().filter(|other| other == holder).count() >= self.needed
        };
        let agreed = || counted().filter(is_agreed);
        // Its process may be connected to some of the nodes only.
        agreed().find(|holder| holder.owner().is_some_and(|owner| owner.address.is_some())).or_else(|| agreed().next())
    }

    /// How much is left of the lease of the [`holder`](Self::holder), if nobody renews it: so many nodes keep it until then as
    /// must agree.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let holder = self.holder()?;
        let mut left: Vec<_> =
            self.nodes.iter().filter(|node| node.holder == *holder).map(|node| node.remaining?.into()).collect();
        left.sort_unstable_by(|a: &Option<Duration>, b| b.cmp(a));
        left.get(self.needed.checked_sub(1)?).copied().flatten()
    }

    /// Those who wait for the key at any node, in the order in which they are served; of a long queue the first hundred.
    #[must_use]
    pub fn waiters(&self) -> Vec<&Owner> {
        let is_better = |a: &Owner, b: &Owner| a.address.is_some() || b.address.is_none();
        let mut waiters: Vec<&Owner> = self.nodes.iter().flat_map(|node| &node.waiters).collect();
        // Of one token, the entry that says most comes first and stays.
        waiters.sort_by(|a, b| a.token.cmp(&b.token).then_with(|| is_better(b, a).cmp(&is_better(a, b))));
        waiters.dedup_by_key(|owner| owner.token);
        waiters
    }

    /// The largest [fence](NodeInspection::fence) of any node.
    #[must_use]
    pub fn fence(&self) -> Option<FencingToken> {
        self.nodes.iter().filter_map(|node| node.fence).max()
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: ", self.key.as_str())?;
        match self.holder() {
            Some(Holder::Owner(owner)) => write!(f, "held by {owner}, which asked {} ago", spoken(owner.age()))?,
            Some(holder) => write!(f, "{holder}")?,
            None => {
                let answered = self.nodes.iter().filter(|node| node.error.is_none()).count();
                let (needed, nodes) = (self.needed, self.nodes.len());
                write!(f, "no majority: {needed} of {nodes} nodes must agree, and {answered} can be relied on")?;
            }
        }
        if let Some(remaining) = self.remaining() {
            write!(f, ", {} left unless it is renewed", spoken(remaining))?;
        }
        for node in &self.nodes {
            f.write_str("\n  ")?;
            node.write(self.holder(), f)?;
        }
        self.waiters().iter().try_for_each(|owner| write!(f, "\n  waits for {}: {owner}", spoken(owner.age())))?;
        let unnamed = self.nodes.iter().filter_map(|node| Some((&node.node, node.unnamed.as_ref()?)));
        unnamed
            .into_iter()
            .try_for_each(|(node, error)| write!(f, "\n  which processes these are is unknown at {node}: {error}"))
    }
}
