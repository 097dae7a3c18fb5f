//! Known round trips to the nodes of a manager: how long the answers of a majority take.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Divisor of the maximum growth of a known round trip by one longer measurement (an eighth). Too large: a slower network is noticed later.
/// Too small: one slow answer makes all calls wait longer for dead nodes.
const BELIEVED: u32 = 8;

/// Minimum of this growth. Too small: a known round trip of nearly zero never grows.
const LEAST_BELIEVED: Duration = Duration::from_micros(50);

/// Round trips by node, and by address for each of its parts.
type Shortest = BTreeMap<Box<str>, BTreeMap<Box<str>, Duration>>;

/// The round trips to the nodes of one manager.
///
/// The shortest recent round trip of each node is used: it measures the distance, and not the load. The distance of a node with several
/// parts is that of the farthest connected part, because any of them may have the key.
pub(crate) struct RoundTrips {
    needed: usize,
    shortest: Mutex<Shortest>,
    /// The longest round trip in the nearest majority, in microseconds; zero if it is unknown.
    to_quorum: AtomicU64,
}

impl RoundTrips {
    /// Creates the round trips of a manager that needs this many nodes.
    pub(crate) fn new(needed: usize) -> Self {
        Self { needed, shortest: Mutex::default(), to_quorum: AtomicU64::new(0) }
    }

    /// Records that the server at `address`, which is `node` or a part of it, has answered after this `round_trip`.
    pub(crate) fn measured(&self, node: &str, address: &str, round_trip: Duration) {
        let mut shortest = self.shortest();
        match shortest.get_mut(node).and_then(|parts| parts.get_mut(address)) {
            Some(known) => *known = round_trip.min(*known + (*known / BELIEVED).max(LEAST_BELIEVED)),
            None => drop(shortest.entry(node.into()).or_default().insert(address.into(), round_trip)),
        }
        self.decide(&shortest);
    }

    /// Records that the connection to `address` broke: a node without remaining parts is no longer among the near ones.
    pub(crate) fn disconnected(&self, node: &str, address: &str) {
        let mut shortest = self.shortest();
        if let Some(parts) = shortest.get_mut(node) {
            parts.remove(address);
        }
        shortest.retain(|_, parts| !parts.is_empty());
        self.decide(&shortest);
    }

    /// Returns the minimum time for the answers of a majority of the nodes that answer; zero if it is unknown.
    pub(crate) fn to_quorum(&self) -> Duration {
        Duration::from_micros(self.to_quorum.load(Ordering::Relaxed))
    }

    fn decide(&self, shortest: &Shortest) {
        let mut sorted: Vec<_> = shortest.values().filter_map(|parts| parts.values().max().copied()).collect();
        sorted.sort_unstable();
        let micros = |distance: Duration| u64::try_from(distance.as_micros()).unwrap_or(u64::MAX);
        match self.needed.checked_sub(1).and_then(|index| sorted.get(index)) {
            Some(last) => self.to_quorum.store(micros(*last), Ordering::Relaxed),
            // With fewer nodes, a majority is not nearer than the last of them. The previous value stays: the others may soon be back, at
            // the same distance.
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
    fn quorum_round_trip_is_that_of_its_slowest_nearest_node() {
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
    fn cluster_counts_once_with_the_round_trip_of_its_slowest_shard() {
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
    fn round_trip_estimate_drops_at_once_and_rises_gradually() {
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
