//! What one node was asked, and how it has answered.

use super::Histogram;

/// What one node was asked, and how it has answered, since the manager was made.
///
/// A cluster is one node: the sum of all its masters. A command that one of them has sent elsewhere counts at each, and as an error.
///
/// For a node in memory only the name is of interest: its commands are calls of functions, and not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStats {
    /// Its address, without user and password.
    pub node: Box<str>,
    /// Whether there is a connection now.
    pub is_up: bool,
    /// Commands about locks that were sent.
    pub commands: u64,
    /// Of those, the ones that were answered by an error, or not at all.
    pub errors: u64,
    /// How often a connection was made after the first one.
    pub reconnections: u64,
    /// From when a batch of commands was sent to when its answers were here: the network, the server, and the waits of both.
    pub round_trip: Histogram,
}

impl NodeStats {
    /// Adds what was counted of a part of the node.
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
