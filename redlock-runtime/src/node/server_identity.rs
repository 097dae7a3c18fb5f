//! Identity of a server as it reports it, and the facts remembered about it.

use crate::protocol::rules::{Rule, Rules};
use crate::time::clock::Instant;
use std::time::Duration;

/// Identity of a server at the time of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Changes with every start.
    pub(crate) run_id: Box<str>,
    pub(crate) uptime: Duration,
    /// `true` if its settings promise that its data survives a crash. They do not prove that the data directory is the old one.
    pub(crate) is_durable: bool,
    pub(crate) data: DataSet,
    /// `None` if it could not be read or written, and for members of a cluster.
    pub(crate) marker: Option<Marker>,
}

impl Identity {
    /// Returns the ages of the process and of its data. The data may be younger, if it was deleted or replaced while the process continued.
    pub(crate) fn ages(&self) -> Ages {
        let of_data = self.marker.as_ref().and_then(|marker| marker.age);
        [self.uptime, of_data.unwrap_or(self.uptime)]
    }

    /// Limits the uptime to the time for which the server has been the master, if this is known: before that, it was a replica and may have
    /// missed locks.
    pub(crate) fn in_office_for(self, time: Option<Duration>) -> Self {
        Self { uptime: time.map_or(self.uptime, |time| time.min(self.uptime)), ..self }
    }

    /// Returns the identity of a server with a known address and no other facts.
    pub(crate) fn unknown() -> Self {
        Self { run_id: "".into(), uptime: Duration::ZERO, is_durable: false, data: DataSet::default(), marker: None }
    }
}

/// Proof in the data of a server: a marker that all processes share, and the receipt of the last connection of this process. Both are lost
/// with the data, and an older copy of the data has an older receipt.
///
/// Settings cannot prove this: a server that writes every command to disk may come back on an empty disk, or on a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    /// Chosen at random by the process that found no marker.
    pub(crate) id: Box<str>,
    /// Time since the marker was written, by the server's clock; `None` if the user may not run `TIME`.
    pub(crate) age: Option<Duration>,
    /// Number of the receipt that this connection has left.
    pub(crate) receipt: u64,
    /// Number of the last receipt of this process, if it was found.
    pub(crate) follows: Option<u64>,
}

impl Marker {
    /// Returns `true` if the data includes all writes from before `earlier` was read.
    fn continues(&self, earlier: &Self, rules: Rules) -> bool {
        let has_receipt = self.follows == Some(earlier.receipt) || !rules.apply(Rule::OlderDataIsForgotten);
        self.id == earlier.id && has_receipt
    }
}

/// Times for which a server may have remembered its grants, by different measures. Ages of different servers are compared by the same
/// measure: a marker may have been written long after the process started, when the servers were first used.
pub(crate) type Ages = [Duration; MEASURES];

/// The age of the process, and of the marker in its data.
pub(crate) const MEASURES: usize = 2;

/// Data set of a server, by its replication ids. It never changes for a server that does not report them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DataSet {
    pub(crate) id: Option<Box<str>>,
    /// Previous id of the data: at this server, or at the master from which it was copied.
    pub(crate) previous: Option<Box<str>>,
}

impl DataSet {
    /// Returns `true` if this is the data of the `earlier` observation, with later writes.
    ///
    /// A replica that becomes a master gives its data another id. It keeps the previous one: the id of its last master, whose data has
    /// replaced its earlier data. A master that gets its first replica, or has no replica for an hour (`repl-backlog-ttl`), also changes
    /// the id. There is no previous id in this case.
    pub(super) fn continues(&self, earlier: &Self) -> bool {
        self.id == earlier.id || self.previous.is_none() || self.previous == earlier.id
    }
}

/// The last server at one address.
#[derive(Debug)]
pub(super) struct KnownServer {
    /// The node that it is, or belongs to.
    pub(super) node: Box<str>,
    pub(super) run_id: Box<str>,
    pub(super) is_durable: bool,
    pub(super) data: DataSet,
    pub(super) marker: Option<Marker>,
    /// `true` if it has a vote. It has none if another address leads to the same server and has the vote, or if it is a replica.
    pub(super) counts: bool,
    /// Time at which the last connection broke.
    pub(super) lost_at: Option<Instant>,
    pub(super) abstains_until: Option<Instant>,
    /// Times at which its ages reach the longest lease, if they had not at the first connection of this process.
    pub(super) young_until: [Option<Instant>; MEASURES],
    /// Set for a server that was unknown to this process, until it is certain whether it abstains at first.
    pub(super) is_new: bool,
    /// Its ages at the time of the last connection.
    pub(super) ages: (Ages, Instant),
}

impl KnownServer {
    /// Creates the record of a server with this `identity` that connected `now`.
    pub(super) fn new(node: &str, identity: Identity, counts: bool, now: Instant) -> Self {
        let ages = (identity.ages(), now);
        let Identity { run_id, is_durable, data, marker, .. } = identity;
        Self {
            node: node.into(),
            run_id,
            is_durable,
            data,
            marker,
            ages,
            counts,
            lost_at: None,
            abstains_until: None,
            young_until: [None; MEASURES],
            is_new: false,
        }
    }

    /// Returns the ages at the given time.
    pub(super) fn ages_at(&self, at: Instant) -> Ages {
        let (ages, then) = self.ages;
        ages.map(|age| age + at.since(then))
    }

    /// Returns `true` unless the server that is now `identity` is known to have lost data since the last connection.
    pub(super) fn has_kept_data(&self, identity: &Identity, rules: Rules) -> bool {
        let markers = self.marker.as_ref().zip(identity.marker.as_ref());
        let is_continued = identity.data.continues(&self.data) || !rules.apply(Rule::ReplacedDataIsForgotten);
        is_continued && markers.is_none_or(|(earlier, later)| earlier.id == later.id)
    }

    /// Returns `true` if the server that is now `identity`, perhaps in another process, has certainly kept all data: it was and is
    /// configured to write every command to disk, and its data has the marker and the receipt of the last connection.
    pub(super) fn has_surely_kept_data(&self, identity: &Identity, rules: Rules) -> bool {
        let mut markers = self.marker.iter().zip(&identity.marker);
        let is_proven = markers.any(|(earlier, later)| later.continues(earlier, rules));
        let is_proven = is_proven || !rules.apply(Rule::DurabilityIsProven);
        self.counts && self.is_durable && identity.is_durable && is_proven
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replication_ids_show_whether_data_was_replaced() {
        let data = |[id, previous]: [&str; 2]| {
            let [id, previous] = [id, previous].map(|id| (!id.is_empty()).then(|| id.into()));
            DataSet { id, previous }
        };
        let table = [
            ("nothing has happened", ["a", ""], ["a", ""], true),
            ("nothing has happened since", ["b", "a"], ["b", "a"], true),
            ("a replica that has never had its master's data", ["a", ""], ["b", "a"], true),
            ("another server's data", ["a", ""], ["c", "b"], false),
            ("once more", ["c", "b"], ["e", "d"], false),
            ("the first replica", ["a", ""], ["b", ""], true),
            ("an hour without replica", ["b", "a"], ["c", ""], true),
            ("a server that does not tell", ["", ""], ["", ""], true),
        ];
        for (name, earlier, later, expected) in table {
            assert_eq!(data(later).continues(&data(earlier)), expected, "{name}");
        }
    }
}
