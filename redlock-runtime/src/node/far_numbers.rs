//! Fencing numbers that are further ahead of the servers' clocks than any clock explains.
//!
//! There are two reasons for such a number in a register: the clocks of all servers were set back, or one server is damaged or another
//! program has written to its register. In the second case, a ballot above the number would raise the registers of all other nodes, and the
//! numbers would run out soon. A far number is therefore used only if a quorum of nodes has returned it or a larger one. Before that,
//! ballots follow the clock: the other nodes accept them, and one node that refuses does not matter.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

/// The largest far number that each node has returned for a slot.
#[derive(Debug, Default)]
pub(crate) struct FarNumbers(Mutex<HashMap<u16, BTreeMap<Box<str>, u64>>>);

impl FarNumbers {
    /// Records that `node` has returned a far number for `slot`. Returns the largest number that `needed` nodes have returned or
    /// exceeded; `None` if there are fewer nodes.
    pub(crate) fn record(&self, slot: u16, node: &str, number: u64, needed: usize) -> Option<u64> {
        // No code that can panic runs under this mutex.
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let nodes = slots.entry(slot).or_default();
        let known = nodes.entry(node.into()).or_default();
        *known = number.max(*known);
        let mut numbers: Vec<_> = nodes.values().copied().collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.get(needed.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_number_is_trusted_once_a_quorum_returns_it() {
        let far = FarNumbers::default();
        let table = [
            ("a", 900, None),
            ("a", 950, None),
            ("b", 500, Some(500)),
            ("c", 700, Some(700)),
            ("b", 800, Some(800)),
            ("c", 600, Some(800)),
        ];
        for (node, number, expected) in table {
            assert_eq!(far.record(7, node, number, 2), expected, "{node}: {number}");
        }
        assert_eq!([far.record(8, "a", 900, 2), far.record(8, "b", 100, 1)], [None, Some(900)], "slots are separate");
    }
}
