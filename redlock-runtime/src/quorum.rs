//! Counting votes: how many nodes are enough, and when a round is decided.
//!
//! Source: "Distributed Locks with Redis", the Redis documentation.

/// The smallest majority of `nodes`.
pub(crate) const fn quorum(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// The answers of one round so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Nodes that may still answer.
    pub(crate) open: usize,
    /// Nodes that gave their vote.
    pub(crate) granted: usize,
    /// Nodes on which somebody else holds the key.
    pub(crate) held: usize,
    /// Nodes that failed to answer at all.
    pub(crate) failed: usize,
}

/// What a [`Tally`] means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// More answers are needed and can still decide it.
    Open,
    /// A majority voted for us.
    Reached,
    /// So many nodes are held by others that no majority was possible, whatever failed.
    Contended,
    /// Too few nodes answered.
    OutOfReach,
}

impl Tally {
    /// Decides as early as the answers allow: the slowest node is never waited for when it cannot
    /// change the outcome. Whether a lock is held or the nodes are silent is one outcome or the other to the caller,
    /// so that a missing answer which decides between these two is waited for.
    pub(crate) const fn verdict(self) -> Verdict {
        let nodes = self.open + self.granted + self.held + self.failed;
        let needed = quorum(nodes);
        if self.granted >= needed {
            Verdict::Reached
        } else if self.held > nodes - needed {
            Verdict::Contended
        } else if self.granted + self.open < needed && self.held + self.open <= nodes - needed {
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
            assert_eq!(quorum(nodes), needed, "{nodes} nodes");
        }
    }

    #[test]
    fn verdicts() {
        use Verdict::{Contended, Open, OutOfReach, Reached};
        // (open, granted, held, failed)
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
        for ((open, granted, held, failed), expected) in table {
            let tally = Tally { open, granted, held, failed };
            assert_eq!(tally.verdict(), expected, "{tally:?}");
        }
    }
}
