//! What is counted of one node.

use super::NodeStats;
use super::histogram::Recorder;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted of one node.
#[derive(Debug, Default)]
pub(crate) struct NodeCounters {
    commands: AtomicU64,
    errors: AtomicU64,
    connections: AtomicU64,
    round_trip: Recorder,
}

impl NodeCounters {
    /// A command about a lock goes out.
    pub(crate) fn sent(&self) {
        self.commands.fetch_add(1, Ordering::Relaxed);
    }

    /// So many commands were answered by an error, or not at all.
    pub(crate) fn failed(&self, commands: u64) {
        self.errors.fetch_add(commands, Ordering::Relaxed);
    }

    /// Commands that were sent together were answered after so long.
    pub(crate) fn answered(&self, nanos: u64) {
        self.round_trip.record(nanos);
    }

    /// There is a new connection.
    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, node: &str, is_up: bool) -> NodeStats {
        let [commands, errors, connections] =
            [&self.commands, &self.errors, &self.connections].map(|counter| counter.load(Ordering::Relaxed));
        let (reconnections, round_trip) = (connections.saturating_sub(1), self.round_trip.read());
        NodeStats { node: node.into(), is_up, commands, errors, reconnections, round_trip }
    }
}
