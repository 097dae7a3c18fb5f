//! How far away the nodes of a manager are, as far as that is known: far enough for a majority of them to be waited for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// By how much a longer round trip than before is believed, as a part of what was known (an eighth). Smaller, a network
/// that became slower is noticed later; larger, one answer that took its time makes all calls wait longer for nodes that are
/// dead.
const BELIEVED: u32 = 8;

/// The least by which it is believed. Smaller, what was known as nearly nothing never grows.
const LEAST_BELIEVED: Duration = Duration::from_micros(50);

/// By node, and by address for each of its parts.
type Shortest = BTreeMap<Box<str>, BTreeMap<Box<str>, Duration>>;

/// The round trips to the nodes of one manager.
///
/// What counts is the shortest one of each node lately: the distance, and not how busy somebody was. A node that has parts is
/// as far away as the farthest of those that are connected, because any of them may have the key.
pub(crate) struct RoundTrips {
    needed: usize,
    shortest: Mutex<Shortest>,
    /// The longest of the shortest majority, in microseconds; zero when it is not known.
    to_quorum: AtomicU64,
}

impl RoundTrips {
    /// For a manager that needs so many nodes.
    pub(crate) fn new(needed: usize) -> Self {
        Self { needed, shortest: Mutex::default(), to_quorum: AtomicU64::new(0) }
    }

    /// The server at `address`, which is `node` or a part of it, has answered after so long.
    pub(crate) fn measured(&self, node: &str, address: &str, round_trip: Duration) {
        let mut shortest = self.shortest();
        match shortest.get_mut(node).and_then(|parts| parts.get_mut(address)) {
            Some(known) => *known = round_trip.min(*known + (*known / BELIEVED).max(LEAST_BELIEVED)),
            None => drop(shortest.entry(node.into()).or_default().insert(address.into(), round_trip)),
        }
        self.decide(&shortest);
    }

    /// The connection to `address` broke: a node of which no part is left does not count among those that are near.
    pub(crate) fn disconnected(&self, node: &str, address: &str) {
        let mut shortest = self.shortest();
        if let Some(parts) = shortest.get_mut(node) {
            parts.remove(address);
        }
        shortest.retain(|_, parts| !parts.is_empty());
        self.decide(&shortest);
    }

    /// How long the answers of a majority take at least, of those nodes that answer; zero when it is not known.
    pub(crate) fn to_quorum(&self) -> Duration {
        Duration::from_micros(self.to_quorum.load(Ordering::Relaxed))
    }

    fn decide(&self, shortest: &Shortest) {
        let mut sorted: Vec<_> = shortest.values().filter_map(|parts| parts.values().max().copied()).collect();
        sorted.sort_unstable();
        let micros = |distance: Duration| u64::try_from(distance.as_micros()).unwrap_or(u64::MAX);
        match self.needed.checked_sub(1).and_then(|index| sorted.get(index)) {
            Some(last) => self.to_quorum.store(micros(*last), Ordering::Relaxed),
            // With fewer, a majority is no nearer than the last of those. And what was known stays: the others may be back
            // soon, and are where they were.
            None => drop(self.to_quorum.fetch_max(sorted.last().copied().map_or(0, micros), Ordering::Relaxed)),
        }
    }

    fn shortest(&self) -> MutexGuard<'_, Shortest> {
        // No code that can panic runs under this mutex.
        self.shortest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RoundTrips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&*self.shortest()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_majority_is_as_far_as_the_last_of_its_nearest_nodes() {
        let nodes = RoundTrips::new(2);
        let steps = [("a", 1, 1), ("b", 80, 80), ("c", 3, 3), ("b", 2, 2)];
        for (address, round_trip, expected) in steps {
            nodes.measured(address, address, millis(round_trip));
            assert_eq!(nodes.to_quorum(), millis(expected), "{nodes:?}");
        }
        nodes.measured("c", "c", millis(1));
        for (lost, expected) in [("a", 2), ("b", 2), ("c", 2)] {
            nodes.disconnected(lost, lost);
            assert_eq!(nodes.to_quorum(), millis(expected), "without {lost}");
        }
    }

    #[test]
    fn a_node_with_parts_is_one_node_and_as_far_as_the_farthest_part() {
        let nodes = RoundTrips::new(2);
        for (part, round_trip) in [("c1", 1), ("c2", 5), ("c3", 1)] {
            nodes.measured("c", part, millis(round_trip));
        }
        for (node, round_trip, expected) in [("a", 80, 80), ("b", 2, 5)] {
            nodes.measured(node, node, millis(round_trip));
            assert_eq!(nodes.to_quorum(), millis(expected), "{nodes:?}");
        }
        for (lost, expected) in [("c2", 2), ("c1", 2), ("c3", 80)] {
            nodes.disconnected("c", lost);
            assert_eq!(nodes.to_quorum(), millis(expected), "without {lost}");
        }
    }

    #[test]
    fn what_is_shorter_is_believed_at_once_and_what_is_longer_little_by_little() {
        let nodes = RoundTrips::new(1);
        let measured = |round_trip| {
            nodes.measured("a", "a", millis(round_trip));
            nodes.to_quorum()
        };
        assert_eq!([measured(80), measured(8), measured(5000)], [millis(80), millis(8), millis(9)]);
        let slower = (1..100).find(|_| measured(80) == millis(80)).unwrap();
        assert!((15..25).contains(&slower), "{slower}");
        assert_eq!([measured(0), measured(1)], [Duration::ZERO, LEAST_BELIEVED]);
    }
}
