//! Connection of one manager to a server, with the messages in both directions.

use super::message::{Parcel, Request};
use crate::node::server_identity::Identity;
use std::collections::VecDeque;
use std::mem;
use std::sync::Weak;
use tokio::time::Instant as Moment;

/// Connection of one manager.
pub(super) struct Wire {
    pub(super) channel: String,
    /// `true` if the manager is cut off from the server.
    pub(super) is_cut: bool,
    /// Number of connections after it was cut off.
    pub(super) connections: u64,
    pub(super) listens: bool,
    pub(super) requests: VecDeque<(Moment, Request)>,
    pub(super) parcels: VecDeque<(Moment, Parcel)>,
    pub(super) end: Weak<dyn Peer>,
}

/// Manager at the other end of a connection. All methods except `wake` are called without a mutex.
pub(in crate::testing) trait Peer: Send + Sync {
    /// Wakes the courier: a message was added.
    fn wake(&self);

    /// Reports that the connection broke.
    fn disconnected(&self);

    /// Reports a new connection to a server with this `identity`, before it is used.
    fn meets(&self, identity: Identity);

    /// Reports that the connection can be used.
    fn connected(&self);

    /// Makes every holder check its lock soon.
    fn call_holders(&self);
}

/// Undelivered messages to a server and from it.
pub(super) type Lost = (VecDeque<(Moment, Request)>, VecDeque<(Moment, Parcel)>);

impl Wire {
    /// Connection of the manager at the other `end`, with its `channel`.
    pub(super) fn new(end: Weak<dyn Peer>, channel: String) -> Self {
        let (requests, parcels) = Default::default();
        Self { channel, is_cut: false, connections: 0, listens: false, requests, parcels, end }
    }

    /// Returns `true` if no message is undelivered.
    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.parcels.is_empty()
    }

    /// Removes and returns all undelivered messages.
    pub(super) fn empty(&mut self) -> Lost {
        (mem::take(&mut self.requests), mem::take(&mut self.parcels))
    }

    /// Returns `true` if a message on that channel is delivered here.
    pub(super) fn hears(&self, channel: &str) -> bool {
        self.listens && !self.is_cut && self.channel == channel
    }

    /// Adds a message behind all others.
    pub(super) fn add_parcel(&mut self, at: Moment, parcel: Parcel) {
        let at = self.parcels.back().map_or(at, |(last, _)| at.max(*last));
        self.parcels.push_back((at, parcel));
        self.wake();
    }

    /// Wakes the courier.
    pub(super) fn wake(&self) {
        // A manager that was dropped has no courier.
        if let Some(end) = self.end.upgrade() {
            end.wake();
        }
    }
}
