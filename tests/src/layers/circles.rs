//! Cycles in a graph.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Returns the shortest cycle through each node on a cycle, except for nodes of earlier cycles. The first node of a
/// cycle is repeated at its end.
pub(super) fn find<'a>(edges: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Vec<&'a str>> {
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in edges {
        graph.entry(from).or_default().insert(to);
    }
    let mut circles: Vec<Vec<&str>> = Vec::new();
    for start in graph.keys().copied() {
        let is_met = circles.iter().flatten().any(|met| *met == start);
        circles.extend((!is_met).then(|| way_back(&graph, start)).flatten());
    }
    circles
}

/// Returns the shortest path from a node to itself.
fn way_back<'a>(graph: &BTreeMap<&'a str, BTreeSet<&'a str>>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut reached = BTreeSet::new();
    let mut ways = VecDeque::from([vec![start]]);
    while let Some(way) = ways.pop_front() {
        let neighbours = way.last().and_then(|last| graph.get(last));
        for next in neighbours.into_iter().flatten().copied() {
            let longer: Vec<&str> = way.iter().copied().chain([next]).collect();
            if next == start {
                return Some(longer);
            }
            if reached.insert(next) {
                ways.push_back(longer);
            }
        }
    }
    None
}
