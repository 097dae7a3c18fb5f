//! What a server says of itself, and what is remembered of it.

use crate::time::clock::Instant;
use std::time::Duration;

/// What a server says of itself when a connection to it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Another one after every start.
    pub(crate) run_id: Box<str>,
    pub(crate) uptime: Duration,
    /// `true` if its settings promise that its data survives a crash. They do not prove that the data directory is the old one.
    pub(crate) is_durable: bool,
    pub(crate) data: DataSet,
}

impl Identity {
    /// It has been the one that takes locks for so long, if that is known: before, it was a replica and may have missed some.
    pub(crate) fn in_office_for(self, time: Option<Duration>) -> Self {
        Self { uptime: time.map_or(self.uptime, |time| time.min(self.uptime)), ..self }
    }

    /// That of a server about which nothing is known but its address.
    pub(crate) fn unknown() -> Self {
        Self { run_id: "".into(), uptime: Duration::ZERO, is_durable: false, data: DataSet::default() }
    }
}

/// Which data a server has: the replication ids that it gives to it. One that does not tell them has always the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DataSet {
    pub(crate) id: Option<Box<str>>,
    /// What the data was called before: by this server, or by the master from which it came.
    pub(crate) previous: Option<Box<str>>,
}

impl DataSet {
    /// Whether this is the data that a process had when it was `earlier`, with what was written since.
    ///
    /// A replica that becomes a master gives its data another id and keeps the one before: that of its last master, whose
    /// data it took over in place of its own. A master that gets its first replica, or loses its last one for an hour
    /// (`repl-backlog-ttl`), gives its data another id as well, and then there is none before.
    pub(super) fn continues(&self, earlier: &Self) -> bool {
        self.id == earlier.id || self.previous.is_none() || self.previous == earlier.id
    }
}

/// The last server at one address.
#[derive(Debug)]
pub(super) struct KnownServer {
    /// The node that it is, or whose part it is.
    pub(super) node: Box<str>,
    pub(super) run_id: Box<str>,
    pub(super) is_durable: bool,
    pub(super) data: DataSet,
    /// Whether its votes count. They do not when another address leads to the same server and counts, or when it is a
    /// replica.
    pub(super) counts: bool,
    /// When the last connection broke.
    pub(super) lost_at: Option<Instant>,
    pub(super) abstains_until: Option<Instant>,
    /// When it has been running for the longest lease, if it had not yet when we first met it.
    pub(super) young_until: Option<Instant>,
}

impl KnownServer {
    /// The server that is `identity`, of whom nothing else is known.
    pub(super) fn new(node: &str, identity: Identity, counts: bool) -> Self {
        let Identity { run_id, is_durable, data, .. } = identity;
        Self {
            node: node.into(),
            run_id,
            is_durable,
            data,
            counts,
            lost_at: None,
            abstains_until: None,
            young_until: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_continued_or_replaced() {
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
