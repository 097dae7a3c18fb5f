//! Vote counting: the required number of nodes, and the moment at which a round is decided.
//!
//! Source: "Distributed Locks with Redis", the Redis documentation.

use crate::error::NodeError;

/// Number of nodes, and number of nodes that must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quorum {
    pub(crate) nodes: usize,
    pub(crate) needed: usize,
}

impl Quorum {
    /// Returns the smallest quorum that tolerates `forgetful` nodes without memory. Any two such quorums share more
    /// than `forgetful` nodes. Its size is ceil((N + d + 1) / 2), which is a majority when no node forgets.
    pub(crate) const fn of(nodes: usize, forgetful: usize) -> Self {
        Self { nodes, needed: nodes.saturating_add(forgetful) / 2 + 1 }
    }

    /// Returns `true` if there are at least as many nodes as must agree.
    pub(crate) const fn is_possible(self) -> bool {
        self.needed <= self.nodes
    }

    /// Returns `true` if the nodes that fail for permanent reasons leave too few others for a quorum.
    pub(crate) fn is_refused<'e>(self, failures: impl Iterator<Item = &'e NodeError>) -> bool {
        failures.filter(|failure| !failure.is_transient()).count() > self.spare()
    }

    /// Returns the largest number of nodes that can refuse without deciding the outcome.
    const fn spare(self) -> usize {
        self.nodes.saturating_sub(self.needed)
    }
}

/// Answers of one round so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Nodes that may still answer.
    pub(crate) open: usize,
    /// Nodes that gave their vote.
    pub(crate) granted: usize,
    /// Nodes on which another token holds the key.
    pub(crate) taken: usize,
    /// Nodes that failed to answer at all.
    pub(crate) failed: usize,
}

/// Meaning of a [`Tally`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// More answers are needed, and they can still decide the round.
    Open,
    /// Enough nodes have voted for this token.
    Reached,
    /// Other tokens hold nodes in such a number that a quorum was impossible, whatever failed.
    Contended,
    /// Too few nodes answered.
    OutOfReach,
}

impl Tally {
    /// Decides as early as the answers allow. It never waits for the slowest node if that node cannot change the
    /// outcome. "Taken" and "no answer" are different outcomes for the caller, so it waits for an answer that decides
    /// between them.
    pub(crate) const fn verdict(self, quorum: Quorum) -> Verdict {
        let Quorum { needed, .. } = quorum;
        if self.granted >= needed {
            Verdict::Reached
        } else if self.taken > quorum.spare() {
            Verdict::Contended
        } else if self.granted + self.open < needed && self.taken + self.open <= quorum.spare() {
            Verdict::OutOfReach
        } else {
            Verdict::Open
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn majorities() {
        let table = [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)];
        for (nodes, needed) in table {
            assert_eq!(Quorum::of(nodes, 0), Quorum { nodes, needed });
        }
    }

    #[test]
    fn any_two_quorums_share_a_node_without_data_loss() {
        for nodes in 1..=9 {
            for forgetful in 0..nodes {
                let quorum = Quorum::of(nodes, forgetful);
                let in_common = |needed: usize| (2 * needed).saturating_sub(nodes);
                assert!(quorum.is_possible(), "{quorum:?}");
                assert!(in_common(quorum.needed) > forgetful, "{quorum:?}");
                assert!(in_common(quorum.needed - 1) <= forgetful, "{quorum:?} is more than it takes");
            }
            assert!(!Quorum::of(nodes, nodes).is_possible() && !Quorum::of(nodes, usize::MAX).is_possible());
        }
    }

    #[test]
    fn quorum_is_refused_if_too_few_nodes_can_recover() {
        use NodeError::{Disconnected, Refused, Replica};
        let refused = |code: &str| Refused(code.into());
        let table = [
            (1, vec![refused("NOPERM no")], true),
            (1, vec![refused("LOADING the data")], false),
            (3, vec![refused("NOPERM no"), Replica], true),
            (3, vec![refused("NOPERM no"), Disconnected, Disconnected], false),
            (3, vec![refused("NOPERM no"), refused("OOM too much"), Disconnected], false),
            (3, vec![], false),
        ];
        for (nodes, failures, expected) in table {
            assert_eq!(Quorum::of(nodes, 0).is_refused(failures.iter()), expected, "{nodes}: {failures:?}");
        }
    }

    #[test]
    fn raised_quorum_is_lost_sooner() {
        let quorum = Quorum::of(5, 2);
        let table = [
            (Tally { granted: 3, open: 2, ..Tally::default() }, Verdict::Open),
            (Tally { granted: 4, open: 1, ..Tally::default() }, Verdict::Reached),
            (Tally { granted: 3, taken: 2, ..Tally::default() }, Verdict::Contended),
            (Tally { granted: 3, failed: 2, ..Tally::default() }, Verdict::OutOfReach),
        ];
        for (tally, expected) in table {
            assert_eq!(tally.verdict(quorum), expected, "{tally:?}");
        }
    }

    #[test]
    fn verdict_follows_from_the_tally_of_answers() {
        use Verdict::{Contended, Open, OutOfReach, Reached};
        // (open, granted, taken, failed)
        let table = [
            ((1, 0, 0, 0), Open),
            ((0, 1, 0, 0), Reached),
            ((0, 0, 1, 0), Contended),
            ((0, 0, 0, 1), OutOfReach),
            ((2, 1, 0, 0), Open),
            ((1, 2, 0, 0), Reached),
            ((1, 0, 2, 0), Contended),
            ((1, 0, 1, 1), Open),
            ((1, 1, 0, 1), Open),
            ((1, 0, 0, 2), OutOfReach),
            ((1, 1, 1, 0), Open),
            ((0, 1, 1, 1), OutOfReach),
            ((0, 1, 0, 2), OutOfReach),
            ((2, 2, 1, 0), Open),
            ((2, 3, 0, 0), Reached),
            ((0, 3, 0, 2), Reached),
            ((0, 2, 3, 0), Contended),
            ((1, 2, 2, 0), Open),
            ((0, 2, 2, 1), OutOfReach),
            ((1, 0, 2, 2), Open),
            ((1, 0, 1, 3), OutOfReach),
            ((0, 0, 3, 2), Contended),
            ((1, 1, 0, 0), Open),
        ];
        for ((open, granted, taken, failed), expected) in table {
            let tally = Tally { open, granted, taken, failed };
            assert_eq!(tally.verdict(Quorum::of(open + granted + taken + failed, 0)), expected, "{tally:?}");
        }
    }
}
