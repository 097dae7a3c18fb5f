//! One server: its process, its data, and the faults that change them.

use super::known::{DataSet, Identity, LONGEST, Marker};

/// Number of clients.
pub(crate) const CLIENTS: usize = 2;

/// A server with its data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Server {
    /// Counts the processes at this address.
    pub(crate) run: u8,
    /// Time at which the process started.
    pub(crate) started: u8,
    pub(crate) set: DataSet,
    pub(crate) data: Data,
    /// Earlier copy of the data.
    pub(crate) copy: Option<Data>,
    /// Counts the markers that were written.
    pub(crate) markers: u8,
}

/// Keys of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Data {
    /// Client that owns the lock, and the time at which the key expires.
    pub(crate) owner: Option<(u8, u8)>,
    /// Marker, and the time at which it was written.
    pub(crate) marker: Option<(u8, u8)>,
    /// Last receipt of each client, 0 for none.
    pub(crate) receipts: [u8; CLIENTS],
}

/// Change of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process restarts and has all of its data.
    Restart,
    /// The process restarts without data.
    RestartEmpty,
    /// The process restarts with a copy of its data from an earlier tick.
    RestartOnCopy,
    /// A replica, which has run for long and has missed the lock, takes the place of the server.
    Promote,
    /// The same process gets the data of another server.
    Replace,
}

/// Replication id of the data of another server.
const FOREIGN: u8 = u8::MAX;

impl Server {
    /// Returns what `client` learns from a new connection. Writes the marker if there is none, and the receipt.
    pub(crate) fn identify(&mut self, client: usize, now: u8, is_durable: bool, has_markers: bool) -> Identity {
        let marker = has_markers.then(|| {
            let (id, born) = self.data.marker.unwrap_or_else(|| {
                self.markers += 1;
                (self.markers, now)
            });
            self.data.marker = Some((id, born));
            let follows = Some(self.data.receipts[client]).filter(|receipt| *receipt > 0);
            self.data.receipts[client] = now;
            Marker { id, age: now - born, receipt: now, follows }
        });
        Identity { run: self.run, uptime: now - self.started, is_durable, data: self.set, marker }
    }

    /// Grants the lock to `client` if it is free or belongs to the client. Returns `None` if it is taken, and otherwise whether the client
    /// owned it before.
    pub(crate) fn acquire(&mut self, client: usize, now: u8) -> Option<bool> {
        let owner = self.data.owner.filter(|(_, until)| now < *until).map(|(owner, _)| usize::from(owner));
        if owner.is_some_and(|owner| owner != client) {
            return None;
        }
        self.data.owner = Some((client as u8, now + LONGEST));
        Some(owner.is_some())
    }

    pub(crate) fn suffer(&mut self, fault: Fault, now: u8) {
        let old_id = self.set.id;
        self.set = DataSet { id: old_id + 1, previous: None };
        match fault {
            Fault::Restart => {}
            Fault::RestartEmpty => self.data = Data::default(),
            Fault::RestartOnCopy => self.data = self.copy.unwrap_or_default(),
            Fault::Promote => {
                self.set.previous = Some(old_id);
                self.data.owner = None;
            }
            Fault::Replace => {
                self.set.previous = Some(FOREIGN);
                self.data = Data::default();
            }
        }
        if fault != Fault::Replace {
            self.run += 1;
            self.started = if fault == Fault::Promote { 0 } else { now };
        }
    }
}
