//! Server of a test: its identity, its connections, and its answers to requests that are not commands.
//!
//! One mutex protects the whole server, so its replies to all managers are in one order. Calls to the outside, which may call the
//! server again, are made after that by the [`Peer`]s.

mod delivery;
mod message;
mod troubles;
mod wire;

pub(super) use self::message::{Parcel, Request, Step};
pub(super) use self::wire::Peer;

use self::wire::Wire;
use crate::error::NodeError;
use crate::lock::{LockKey, OwnerToken};
use crate::node::server_identity::{DataSet, Identity};
use crate::protocol::command::Occupant;
use crate::protocol::node_state::{NodeState, Seen};
use crate::time::clock::{Clock, Instant};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Uptime of a server at the start of a test. It exceeds all leases, so the server votes from the start.
const RAN_BEFORE: Duration = Duration::from_secs(40 * 86_400);

pub(super) struct Server {
    pub(super) label: String,
    clock: Clock,
    inner: Mutex<Inner>,
}

struct Inner {
    state: NodeState,
    is_down: bool,
    is_frozen: bool,
    /// Round-trip time of a command.
    delay: Duration,
    /// Error reply to every command.
    refusal: Option<Box<str>>,
    /// Random numbers for the delays of messages.
    jitter: Option<Rng>,
    /// Number of earlier processes, and the start time of the present one.
    starts: u64,
    started_at: Instant,
    connections: u64,
    wires: BTreeMap<usize, Wire>,
    next_wire: usize,
}

impl Server {
    pub(super) fn new(label: String, clock: Clock) -> Self {
        let inner = Inner {
            state: NodeState::default(),
            is_down: false,
            is_frozen: false,
            delay: Duration::ZERO,
            refusal: None,
            jitter: None,
            starts: 0,
            started_at: clock.now(),
            connections: 1,
            wires: BTreeMap::new(),
            next_wire: 0,
        };
        Self { label, clock, inner: Mutex::new(inner) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // No code that can panic runs under this mutex.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time of the server since 1970.
    pub(super) fn time(&self) -> Duration {
        Duration::from_micros(self.clock.wall_micros())
    }

    /// Returns the identity that a new connection sees.
    pub(super) fn identity(&self) -> Identity {
        let inner = self.inner();
        let ran_before = if inner.starts == 0 { RAN_BEFORE } else { Duration::ZERO };
        Identity {
            run_id: format!("{}.{}", self.label, inner.starts).into(),
            uptime: self.clock.now().since(inner.started_at) + ran_before,
            is_durable: false,
            data: DataSet::default(),
            marker: None,
        }
    }

    /// Connects the manager at the other `end`, with its `channel`. Returns the number of its connection.
    pub(super) fn connect(&self, end: Weak<dyn Peer>, channel: String) -> usize {
        let mut inner = self.inner();
        let number = inner.next_wire;
        inner.next_wire += 1;
        inner.wires.insert(number, Wire::new(end, channel));
        number
    }

    /// Removes the connection of a manager.
    pub(super) fn leave(&self, wire: usize) {
        let gone = self.inner().wires.remove(&wire);
        // Dropped outside of the mutex: the recipients learn that no reply comes.
        drop(gone);
    }

    pub(super) fn listen(&self, wire: usize) {
        self.inner().wires.get_mut(&wire).into_iter().for_each(|wire| wire.listens = true);
    }

    pub(super) fn is_listening(&self, wire: usize) -> bool {
        self.inner().wires.get(&wire).is_some_and(|wire| wire.listens)
    }

    /// Returns the reason why a manager is not connected.
    pub(super) fn trouble(&self, wire: usize) -> Option<NodeError> {
        self.inner().trouble(wire)
    }

    /// Returns the number of connections that a manager has had.
    pub(super) fn connections(&self, wire: usize) -> u64 {
        let inner = self.inner();
        inner.connections + inner.wires.get(&wire).map_or(0, |wire| wire.connections)
    }

    /// Returns the delay of a reply, without random delays.
    pub(super) fn delay(&self) -> Duration {
        self.inner().delay
    }

    /// Checks that the server answers a request that is not a command.
    pub(super) fn tell(&self, wire: usize) -> Result<(), NodeError> {
        self.inner().silence(wire).map_or(Ok(()), Err)
    }

    /// Returns the content of `key`.
    pub(super) fn look(&self, wire: usize, key: &LockKey) -> Result<Seen, NodeError> {
        let inner = self.inner();
        inner.silence(wire).map_or_else(|| Ok(inner.state.look(key, self.clock.now())), Err)
    }

    pub(super) fn occupant(&self, wire: usize, key: &LockKey) -> Occupant {
        let inner = self.inner();
        let occupant = || inner.state.occupant(key.name(), self.clock.now());
        inner.silence(wire).map_or_else(occupant, |_| Occupant::Unknown)
    }

    pub(super) fn holder(&self, wire: usize, key: &LockKey) -> Option<OwnerToken> {
        self.look(wire, key).ok()?.holder.map(|holder| holder.token)
    }

    /// Deletes a key. Returns `true` if it existed.
    pub(super) fn erase(&self, key: &LockKey) -> bool {
        self.inner().state.erase(key.name(), self.clock.now())
    }

    /// Makes every holder check its lock soon.
    pub(super) fn call_holders(&self) {
        for end in self.ends() {
            end.call_holders();
        }
    }
}
