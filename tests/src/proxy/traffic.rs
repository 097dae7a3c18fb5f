//! What has gone through a proxy.

use tokio::sync::watch;

/// Counters of one [`Proxy`](crate::Proxy) since its start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traffic {
    /// Connections accepted.
    pub accepted: u64,
    /// Of these, connections still open.
    pub live: u64,
    /// From the clients to the server.
    pub requests: Direction,
    /// From the server to the clients.
    pub replies: Direction,
}

/// Bytes in one direction. Those received but neither forwarded nor dropped are held or delayed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Direction {
    /// Bytes that reached the proxy.
    pub received: u64,
    /// Bytes passed on.
    pub forwarded: u64,
    /// Bytes thrown away.
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
