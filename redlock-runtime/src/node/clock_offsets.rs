//! Offsets between the clocks of the nodes of a manager and ours: the offset that most of them show.

use crate::time::ballot_clock::{Ahead, Believed};
use std::collections::BTreeMap;

/// Offset of each clock, `None` for one that may not be queried; by node, and by address for each of its parts.
#[derive(Debug, Default)]
pub(crate) struct ClockOffsets(BTreeMap<Box<str>, BTreeMap<Box<str>, Option<Ahead>>>);

impl ClockOffsets {
    /// Records the offset of the server at `address`, which is `node` or a part of it.
    pub(crate) fn told(&mut self, node: &str, address: &str, ahead: Option<Ahead>) {
        self.0.entry(node.into()).or_default().insert(address.into(), ahead);
    }

    /// Forgets the parts of `node` that are gone.
    pub(crate) fn retain(&mut self, node: &str, are_there: impl Fn(&str) -> bool) {
        if let Some(parts) = self.0.get_mut(node) {
            parts.retain(|address, _| are_there(address));
        }
        self.0.retain(|_, parts| !parts.is_empty());
    }

    /// Returns the median of the offsets once `needed` nodes are known; of two in the middle, the smaller one. A minority that is far ahead
    /// or behind does not move it. A node with several parts is one node. Returns our clock if `needed` nodes are known, and too few of
    /// them may be queried.
    pub(crate) fn middle(&self, needed: usize) -> Option<Believed> {
        let nodes: Vec<_> = self.0.values().filter_map(|parts| middle(parts.values().copied().flatten())).collect();
        let servers = (nodes.len() >= needed).then(|| middle(nodes.into_iter()).map(Believed::Servers)).flatten();
        servers.or_else(|| (self.0.len() >= needed).then_some(Believed::Ours))
    }
}

fn middle(values: impl Iterator<Item = Ahead>) -> Option<Ahead> {
    let mut sorted: Vec<_> = values.collect();
    sorted.sort_unstable();
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::clock::Instant;
    use std::time::Duration;

    fn ahead(micros: i64) -> Ahead {
        Ahead::new(micros, Instant::from_origin(Duration::ZERO))
    }

    #[expect(clippy::unnecessary_wraps, reason = "as it is compared")]
    fn servers(micros: i64) -> Option<Believed> {
        Some(Believed::Servers(ahead(micros)))
    }

    #[test]
    fn shards_of_one_node_count_as_one_clock_offset() {
        let mut offsets = ClockOffsets::default();
        for (part, micros) in [("c1", 900), ("c2", 1000), ("c3", 1100)] {
            offsets.told("c", part, Some(ahead(micros)));
        }
        assert_eq!([offsets.middle(1), offsets.middle(2)], [servers(1000), None], "one node is no majority");
        offsets.told("a", "a", Some(ahead(10)));
        offsets.told("b", "b", Some(ahead(20)));
        assert_eq!(offsets.middle(2), servers(20));
        offsets.told("d", "d", Some(ahead(1_000_000)));
        assert_eq!(offsets.middle(3), servers(20), "of two the one that is less ahead");
        offsets.retain("d", |_| false);
        offsets.retain("c", |part| part == "c3");
        assert_eq!(offsets.middle(3), servers(20));
        offsets.retain("c", |_| false);
        assert_eq!([offsets.middle(2), offsets.middle(3)], [servers(10), None]);
    }

    #[test]
    fn local_time_is_used_if_too_few_nodes_report_time() {
        let mut offsets = ClockOffsets::default();
        offsets.told("a", "a", None);
        assert_eq!([offsets.middle(1), offsets.middle(2)], [Some(Believed::Ours), None]);
        offsets.told("b", "b", Some(ahead(10)));
        assert_eq!([offsets.middle(1), offsets.middle(2)], [servers(10), Some(Believed::Ours)]);
        offsets.told("a", "a", Some(ahead(20)));
        assert_eq!(offsets.middle(2), servers(10));
    }
}
