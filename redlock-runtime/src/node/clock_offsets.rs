//! By how much the clocks of the nodes of a manager are ahead of ours: what the most of them show.

use std::collections::BTreeMap;

/// By how many microseconds each clock is ahead; by node, and by address for each of its parts.
#[derive(Debug, Default)]
pub(crate) struct ClockOffsets(BTreeMap<Box<str>, BTreeMap<Box<str>, i64>>);

impl ClockOffsets {
    /// The clock of the server at `address`, which is `node` or a part of it, is so much ahead.
    pub(crate) fn told(&mut self, node: &str, address: &str, micros: i64) {
        self.0.entry(node.into()).or_default().insert(address.into(), micros);
    }

    /// There is no server at `address` any more.
    pub(crate) fn forget(&mut self, node: &str, address: &str) {
        if let Some(parts) = self.0.get_mut(node) {
            parts.remove(address);
        }
        self.0.retain(|_, parts| !parts.is_empty());
    }

    /// The one in the middle, and of two that are there the one that is less ahead, once so many nodes are known as are `needed`: a minority
    /// that is far ahead or behind does not move it. A node that has parts is one, however many these are.
    pub(crate) fn middle(&self, needed: usize) -> Option<i64> {
        let nodes = self.0.values().filter_map(|parts| middle(parts.values().copied()));
        middle(nodes).filter(|_| self.0.len() >= needed)
    }
}

fn middle(values: impl Iterator<Item = i64>) -> Option<i64> {
    let mut sorted: Vec<_> = values.collect();
    sorted.sort_unstable();
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_one_node_do_not_outvote_the_others() {
        let mut offsets = ClockOffsets::default();
        for (part, micros) in [("c1", 900), ("c2", 1000), ("c3", 1100)] {
            offsets.told("c", part, micros);
        }
        assert_eq!([offsets.middle(1), offsets.middle(2)], [Some(1000), None], "one node is no majority");
        offsets.told("a", "a", 10);
        offsets.told("b", "b", 20);
        assert_eq!(offsets.middle(2), Some(20));
        offsets.told("d", "d", 1_000_000);
        assert_eq!(offsets.middle(3), Some(20), "of two the one that is less ahead");
        offsets.forget("d", "d");
        for address in ["c1", "c2", "c3"] {
            offsets.forget("c", address);
        }
        assert_eq!([offsets.middle(2), offsets.middle(3)], [Some(10), None]);
    }
}
