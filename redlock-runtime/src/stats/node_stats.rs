//! Statistics about one node.

use super::Histogram;

/// Commands, errors and round trips of one node, since the manager was built.
///
/// A cluster is one node: the numbers are the sum of all its masters. A redirected command counts at each master that received it, and
/// as an error.
///
/// The in-memory node has a name only, because its commands are function calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NodeStats {
    /// Address of the node, without user and password.
    pub node: Box<str>,
    /// `true` if the node is connected now.
    pub is_up: bool,
    /// Number of commands about locks that were sent.
    pub commands: u64,
    /// Number of these commands that failed or got no reply.
    pub errors: u64,
    /// Number of connections after the first one.
    pub reconnections: u64,
    /// Round trips of batches of commands: network, server, and the queues of both.
    pub round_trip: Histogram,
}

impl NodeStats {
    /// Adds the numbers of a part of the node.
    pub(crate) fn add(&mut self, part: &Self) {
        self.commands += part.commands;
        self.errors += part.errors;
        self.reconnections += part.reconnections;
        self.round_trip.add(&part.round_trip);
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            node: self.node.clone(),
            is_up: self.is_up,
            commands: self.commands.saturating_sub(earlier.commands),
            errors: self.errors.saturating_sub(earlier.errors),
            reconnections: self.reconnections.saturating_sub(earlier.reconnections),
            round_trip: self.round_trip.since(&earlier.round_trip),
        }
    }
}
