//! One state of the restart model, and its bytes.

use super::known::{DataSet, Known};
use super::server::{CLIENTS, Data, Server};
use crate::bytes::{push_packed, take_packed};

/// Largest number of servers.
pub(crate) const SERVERS: usize = 5;

/// Complete state of the model.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    pub(crate) columns: [Column; SERVERS],
    pub(crate) now: u8,
    /// Number of faults so far.
    pub(crate) faults: u8,
    /// Number of connections that were cut.
    pub(crate) cuts: u8,
    /// Number of times that each client has asked for the lock.
    pub(crate) asked: [u8; CLIENTS],
}

/// Server with the connections to it. Sorting the columns removes the symmetry of the servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Column {
    pub(crate) server: Server,
    pub(crate) links: [Link; CLIENTS],
}

/// Knowledge of a client about a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    pub(crate) known: Option<Known>,
    pub(crate) is_connected: bool,
    /// Time until which the server provably keeps the lock for the client.
    pub(crate) lease: u8,
}

impl Data {
    fn word(self) -> u64 {
        let (owner, until) = self.owner.map_or((0, 0), |(owner, until)| (owner + 1, until));
        let (marker, born) = self.marker.unwrap_or_default();
        let [first, second] = self.receipts;
        u64::from_le_bytes([owner, until, marker, born, first, second, 0, 0])
    }

    fn from_word(word: u64) -> Self {
        let [owner, until, marker, born, first, second, ..] = word.to_le_bytes();
        let owner = owner.checked_sub(1).map(|owner| (owner, until));
        Self { owner, marker: (marker > 0).then_some((marker, born)), receipts: [first, second] }
    }
}

impl Server {
    fn words(&self) -> [u64; 3] {
        let DataSet { id, previous } = self.set;
        let own =
            [self.run, self.started, id, previous.unwrap_or_default(), self.markers, self.copy.is_some().into(), 0, 0];
        [u64::from_le_bytes(own), self.data.word(), self.copy.unwrap_or_default().word()]
    }

    fn from_words([own, data, copy]: [u64; 3]) -> Self {
        let [run, started, id, previous, markers, is_copied, ..] = own.to_le_bytes();
        let copy = (is_copied == 1).then(|| Data::from_word(copy));
        let set = DataSet { id, previous: (previous > 0).then_some(previous) };
        Self { run, started, set, data: Data::from_word(data), copy, markers }
    }
}

impl Link {
    fn words(&self) -> [u64; 2] {
        let known = self.known.unwrap_or_default();
        let (marker, receipt) = known.marker.unwrap_or_default();
        let DataSet { id, previous } = known.data;
        let is = [self.known.is_some(), self.is_connected, known.is_durable];
        let flags = is.iter().rev().fold(0, |flags, is| flags << 1 | u8::from(*is));
        let ([young, data_young], [began, data_began]) = (known.young_until, known.began);
        let lost_at = known.lost_at.unwrap_or_default();
        [
            u64::from_le_bytes([flags, self.lease, known.run, id, previous.unwrap_or_default(), marker, receipt, 0]),
            u64::from_le_bytes([lost_at, known.abstains_until, young, data_young, began, data_began, 0, 0]),
        ]
    }

    fn from_words([own, times]: [u64; 2]) -> Self {
        let [flags, lease, run, id, previous, marker, receipt, _] = own.to_le_bytes();
        let [lost_at, abstains_until, young, data_young, began, data_began, ..] = times.to_le_bytes();
        let known = Known {
            run,
            is_durable: flags & 4 != 0,
            data: DataSet { id, previous: (previous > 0).then_some(previous) },
            marker: (marker > 0).then_some((marker, receipt)),
            lost_at: (lost_at > 0).then_some(lost_at),
            abstains_until,
            young_until: [young, data_young],
            began: [began, data_began],
        };
        Self { known: (flags & 1 != 0).then_some(known), is_connected: flags & 2 != 0, lease }
    }
}

impl State {
    pub(crate) fn encode(&self, servers: usize, bytes: &mut Vec<u8>) {
        let [first, second] = self.asked;
        push_packed(u64::from_le_bytes([self.now, self.faults, self.cuts, first, second, 0, 0, 0]), bytes);
        for column in &self.columns[..servers] {
            let links = column.links.iter().flat_map(Link::words);
            column.server.words().into_iter().chain(links).for_each(|word| push_packed(word, bytes));
        }
    }

    pub(crate) fn decode(servers: usize, bytes: &mut &[u8]) -> Self {
        let [now, faults, cuts, first, second, ..] = take_packed(bytes).to_le_bytes();
        let mut state = Self { now, faults, cuts, asked: [first, second], ..Self::default() };
        for column in &mut state.columns[..servers] {
            column.server = Server::from_words(std::array::from_fn(|_| take_packed(bytes)));
            column.links = std::array::from_fn(|_| Link::from_words(std::array::from_fn(|_| take_packed(bytes))));
        }
        state
    }
}
