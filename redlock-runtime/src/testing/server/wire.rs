//! The connection of one manager to a server, and what is on its way there in both directions.

use super::message::{Parcel, Request};
use crate::node::server_identity::Identity;
use std::collections::VecDeque;
use std::mem;
use std::sync::Weak;
use tokio::time::Instant as Moment;

/// The connection of one manager.
pub(super) struct Wire {
    pub(super) channel: String,
    /// Its manager is cut off from the server.
    pub(super) is_cut: bool,
    /// How many connections it has had after it was cut off.
    pub(super) connections: u64,
    pub(super) listens: bool,
    pub(super) requests: VecDeque<(Moment, Request)>,
    pub(super) parcels: VecDeque<(Moment, Parcel)>,
    pub(super) end: Weak<dyn Peer>,
}

/// The manager at the other end of a connection. Called under no mutex, but for `wake`.
pub(in crate::testing) trait Peer: Send + Sync {
    /// Something is on its way to it, or from it.
    fn wake(&self);

    /// The connection broke.
    fn disconnected(&self);

    /// There is about to be a connection to a server that says that it is `identity`.
    fn meets(&self, identity: Identity);

    /// There is a connection.
    fn connected(&self);

    /// Every holder asks soon whether it has its lock.
    fn call_holders(&self);
}

/// What was on its way to a server and from it.
pub(super) type Lost = (VecDeque<(Moment, Request)>, VecDeque<(Moment, Parcel)>);

impl Wire {
    /// That of the manager at the other `end`, which has that channel.
    pub(super) fn new(end: Weak<dyn Peer>, channel: String) -> Self {
        let (requests, parcels) = Default::default();
        Self { channel, is_cut: false, connections: 0, listens: false, requests, parcels, end }
    }

    /// Whether nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.parcels.is_empty()
    }

    /// Takes away what is on its way.
    pub(super) fn empty(&mut self) -> Lost {
        (mem::take(&mut self.requests), mem::take(&mut self.parcels))
    }

    /// Whether a message on that channel comes here.
    pub(super) fn hears(&self, channel: &str) -> bool {
        self.listens && !self.is_cut && self.channel == channel
    }

    /// Adds what comes after all the others.
    pub(super) fn add_parcel(&mut self, at: Moment, parcel: Parcel) {
        let at = self.parcels.back().map_or(at, |(last, _)| at.max(*last));
        self.parcels.push_back((at, parcel));
        self.wake();
    }

    /// The courier looks again.
    pub(super) fn wake(&self) {
        // One that is gone has none.
        if let Some(end) = self.end.upgrade() {
            end.wake();
        }
    }
}
