//! Traffic counters of a proxy.

use tokio::sync::watch;

/// Counters of one [`Proxy`](crate::Proxy) since its start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traffic {
    /// Number of accepted connections.
    pub accepted: u64,
    /// Number of connections that are still open.
    pub live: u64,
    /// Traffic from the clients to the server.
    pub requests: Direction,
    /// Traffic from the server to the clients.
    pub replies: Direction,
}

/// Bytes in one direction. Received bytes that are neither forwarded nor dropped are held or delayed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Direction {
    /// Bytes that reached the proxy.
    pub received: u64,
    /// Forwarded bytes.
    pub forwarded: u64,
    /// Dropped bytes.
    pub dropped: u64,
}

/// Counts the bytes of one direction.
#[derive(Clone, Copy)]
pub(super) struct Meter<'a> {
    traffic: &'a watch::Sender<Traffic>,
    direction: fn(&mut Traffic) -> &mut Direction,
}

impl<'a> Meter<'a> {
    pub(super) fn requests(traffic: &'a watch::Sender<Traffic>) -> Self {
        Self { traffic, direction: |traffic| &mut traffic.requests }
    }

    pub(super) fn replies(traffic: &'a watch::Sender<Traffic>) -> Self {
        Self { traffic, direction: |traffic| &mut traffic.replies }
    }

    pub(super) fn received(self, bytes: usize) {
        self.update(|direction| direction.received += bytes as u64);
    }

    pub(super) fn forwarded(self, bytes: usize) {
        self.update(|direction| direction.forwarded += bytes as u64);
    }

    pub(super) fn dropped(self, bytes: usize) {
        self.update(|direction| direction.dropped += bytes as u64);
    }

    fn update(self, change: impl FnOnce(&mut Direction)) {
        self.traffic.send_modify(|traffic| change((self.direction)(traffic)));
    }
}
