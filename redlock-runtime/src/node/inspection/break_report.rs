//! What has become of a lock that somebody breaks.

use crate::error::NodeError;
use crate::lock::LockKey;
use std::fmt;

/// What [`LockManager::break_lock`](crate::LockManager::break_lock) has done, node by node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BreakReport {
    /// Whose holder was to lose it.
    pub key: LockKey,
    /// In the order in which the manager was given them.
    pub nodes: Vec<NodeBreak>,
    /// How many of them must agree on a lock.
    pub needed: usize,
    /// Whether the holder was told. One that was not goes on until it asks its nodes by itself: when it
    /// renews, after a third of its `ttl` or so; or, if it does not renew, until its lease ends.
    pub is_told: bool,
    /// Whether the holder has said that its body has stopped, before the next one was served.
    pub has_stopped: bool,
}

/// What has become of it at one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeBreak {
    /// Its address: host and port, or the path of a socket.
    pub node: Box<str>,
    /// What happened there.
    pub outcome: BreakOutcome,
}

/// What has become of a lock that was to be broken, at one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakOutcome {
    /// The token had the lock there, and has it no more: whoever waited first has it now, or nobody.
    Broken,
    /// The token did not have the lock there.
    NotHeld,
    /// The node could not be asked, or refused. The token may have the lock there still; see
    /// [`is_broken`](BreakReport::is_broken).
    Failed(NodeError),
}

impl BreakReport {
    /// Whether the token had the lock at some node and can have no majority any more.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.count(|outcome| *outcome == BreakOutcome::Broken) > 0 && self.is_heard()
    }

    /// Whether so many nodes have answered that the rest of them are no majority.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.count(|outcome| matches!(outcome, BreakOutcome::Failed(_))) < self.needed
    }

    fn count(&self, is_counted: impl Fn(&BreakOutcome) -> bool) -> usize {
        self.nodes.iter().filter(|node| is_counted(&node.outcome)).count()
    }
}

impl fmt::Display for BreakOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken => f.write_str("broken"),
            Self::NotHeld => f.write_str("not held by that token"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl fmt::Display for BreakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match (self.is_heard(), self.is_broken(), self.is_told) {
            (false, ..) => "too few nodes answered, so that it may be held still",
            (true, false, _) => "not held by that token",
            (true, true, true) if self.has_stopped => "broken; the holder was told, and has stopped",
            (true, true, true) => "broken; the holder was told, and has not said yet that it has stopped",
            (true, true, false) => {
                "broken; the holder was not told, and goes on until it notices by itself, when it renews its lease or that ends"
            }
        };
        write!(f, "{:?}: {outcome}", self.key.as_str())?;
        self.nodes.iter().try_for_each(|node| write!(f, "\n  {}: {}", node.node, node.outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_broken_when_the_token_can_have_no_majority() {
        let failed = || BreakOutcome::Failed(NodeError::Disconnected);
        let table = [
            ([BreakOutcome::Broken, BreakOutcome::Broken, BreakOutcome::Broken], (true, true)),
            ([BreakOutcome::Broken, BreakOutcome::NotHeld, failed()], (true, true)),
            ([BreakOutcome::Broken, failed(), failed()], (false, false)),
            ([BreakOutcome::NotHeld, BreakOutcome::NotHeld, failed()], (false, true)),
        ];
        for (outcomes, expected) in table {
            let nodes = outcomes.map(|outcome| NodeBreak { node: "a".into(), outcome }).into();
            let report = BreakReport { key: "order:7".into(), nodes, needed: 2, is_told: true, has_stopped: true };
            assert_eq!((report.is_broken(), report.is_heard()), expected, "{report}");
        }
    }
}
