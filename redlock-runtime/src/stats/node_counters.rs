//! Counters of one node.

use super::NodeStats;
use super::histogram::Recorder;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one node.
#[derive(Debug, Default)]
pub(crate) struct NodeCounters {
    commands: AtomicU64,
    errors: AtomicU64,
    connections: AtomicU64,
    round_trip: Recorder,
}

impl NodeCounters {
    /// Counts a command about a lock.
    pub(crate) fn sent(&self) {
        self.commands.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts commands that failed or got no reply.
    pub(crate) fn failed(&self, commands: u64) {
        self.errors.fetch_add(commands, Ordering::Relaxed);
    }

    /// Counts the round trip of a batch of commands.
    pub(crate) fn answered(&self, nanos: u64) {
        self.round_trip.record(nanos);
    }

    /// Counts a new connection.
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
