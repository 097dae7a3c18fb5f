//! One server of a test: its state, its troubles, and what is on its way to it and from it.
//!
//! Everything of one server is under one mutex, so that what it says to one manager and answers to another one is in one order.
//! What is for the outside, which may come back to the server, is done after that: by the [`Peer`]s.

mod troubles;

use crate::error::NodeError;
use crate::lock::{LockKey, OwnerToken};
use crate::node::Recipient;
use crate::node::server_identity::{DataSet, Identity};
use crate::protocol::command::{Claim, Command, Notice, Occupant, Reply, Subject, Wakeup};
use crate::protocol::node_state::{NodeState, Seen};
use crate::time::ballot_clock::Ballot;
use crate::time::clock::{Clock, Instant};
use crate::time::token_clock::TokenTime;
use fastrand::Rng;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant as Moment;

/// For how long a server has been running when a test begins: longer than any lease, so that it counts from the start.
const RAN_BEFORE: Duration = Duration::from_secs(40 * 86_400);

/// The most that chance adds to the way of a message, in milliseconds: usually, and for one message in thirty.
const JITTER: (u64, u64) = (4, 60);

pub(super) struct Server {
    pub(super) label: String,
    clock: Clock,
    inner: Mutex<Inner>,
}

struct Inner {
    state: NodeState,
    is_down: bool,
    is_frozen: bool,
    /// What a command takes, there and back.
    delay: Duration,
    /// What it answers to every command.
    refusal: Option<Box<str>>,
    /// Makes messages take different times.
    jitter: Option<Rng>,
    /// How many processes there were before this one, and since when there is this one.
    starts: u64,
    started_at: Instant,
    connections: u64,
    wires: BTreeMap<usize, Wire>,
    next_wire: usize,
}

/// The connection of one manager.
struct Wire {
    channel: String,
    /// Its manager is cut off from the server.
    is_cut: bool,
    /// How many connections it has had after it was cut off.
    connections: u64,
    listens: bool,
    requests: VecDeque<(Moment, Request)>,
    parcels: VecDeque<(Moment, Parcel)>,
    end: Weak<dyn Peer>,
}

/// The manager at the other end of a connection. Called under no mutex, but for `wake`.
pub(super) trait Peer: Send + Sync {
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

/// What a manager sends.
pub(super) enum Request {
    Command { command: Command, recipient: Recipient, sent: Instant },
    Publish(Wakeup),
}

/// What a manager gets.
pub(super) enum Parcel {
    Answer { recipient: Recipient, sent: Instant, outcome: Result<Executed, NodeError> },
    Wakeup(Wakeup),
}

/// What the execution of one command led to.
pub(super) struct Executed {
    pub(super) reply: Reply,
    pub(super) seen: Option<TokenTime>,
    /// By the wall clock of the server.
    pub(super) time: Duration,
    /// What was proposed, and for which key.
    pub(super) ballot: Option<(Arc<Subject>, Ballot)>,
}

/// What the courier of a connection does next.
pub(super) enum Step {
    Hand(Parcel),
    /// Nothing is due before then, or before something happens.
    Wait(Option<Moment>),
    /// The manager is gone.
    End,
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

    /// What time it is there, since 1970.
    pub(super) fn time(&self) -> Duration {
        Duration::from_micros(self.clock.wall_micros())
    }

    /// What it says of itself to whoever connects.
    pub(super) fn identity(&self) -> Identity {
        let inner = self.inner();
        let ran_before = if inner.starts == 0 { RAN_BEFORE } else { Duration::ZERO };
        Identity {
            run_id: format!("{}.{}", self.label, inner.starts).into(),
            uptime: self.clock.now().since(inner.started_at) + ran_before,
            is_durable: false,
            data: DataSet::default(),
        }
    }

    /// Connects the manager at the other `end`, which has that channel. The number of its connection.
    pub(super) fn connect(&self, end: Weak<dyn Peer>, channel: String) -> usize {
        let mut inner = self.inner();
        let number = inner.next_wire;
        inner.next_wire += 1;
        let (requests, parcels) = Default::default();
        inner
            .wires
            .insert(number, Wire { channel, is_cut: false, connections: 0, listens: false, requests, parcels, end });
        number
    }

    /// A manager is gone.
    pub(super) fn leave(&self, wire: usize) {
        let gone = self.inner().wires.remove(&wire);
        // Under no mutex: those who wait for answers hear that there are none.
        drop(gone);
    }

    pub(super) fn listen(&self, wire: usize) {
        self.inner().wires.get_mut(&wire).into_iter().for_each(|wire| wire.listens = true);
    }

    pub(super) fn is_listening(&self, wire: usize) -> bool {
        self.inner().wires.get(&wire).is_some_and(|wire| wire.listens)
    }

    /// Why a manager is not connected, if so.
    pub(super) fn trouble(&self, wire: usize) -> Option<NodeError> {
        self.inner().trouble(wire)
    }

    /// How many connections a manager has had by now.
    pub(super) fn connections(&self, wire: usize) -> u64 {
        let inner = self.inner();
        inner.connections + inner.wires.get(&wire).map_or(0, |wire| wire.connections)
    }

    /// How long it takes to answer, beside what chance adds.
    pub(super) fn delay(&self) -> Duration {
        self.inner().delay
    }

    /// What a manager is told that does not ask by a command, or why it gets no answer.
    pub(super) fn tell(&self, wire: usize) -> Result<(), NodeError> {
        self.inner().silence(wire).map_or(Ok(()), Err)
    }

    /// What stands under `key`.
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

    /// Takes a request in. What is there at once is returned.
    pub(super) fn send(&self, number: usize, request: Request) -> Option<Parcel> {
        let (mut inner, now) = (self.inner(), Moment::now());
        if let Some(error) = inner.trouble(number) {
            return request.failed(error);
        }
        let way = inner.way();
        let is_idle = |wire: &Wire| wire.requests.is_empty() && wire.parcels.is_empty();
        if way.is_zero() && !inner.is_frozen && inner.wires.get(&number).is_some_and(is_idle) {
            let parcel = inner.serve(request, self, now)?;
            let wire = inner.wires.get_mut(&number)?;
            // What it has said meanwhile comes first.
            if wire.parcels.is_empty() {
                return Some(parcel);
            }
            wire.add_parcel(now, parcel);
            return None;
        }
        if let Some(wire) = inner.wires.get_mut(&number) {
            let at = wire.requests.back().map_or(now, |(at, _)| *at).max(now + way);
            wire.requests.push_back((at, request));
            wire.wake();
        }
        None
    }

    /// What is due at a connection.
    pub(super) fn step(&self, number: usize) -> Step {
        let (mut inner, now) = (self.inner(), Moment::now());
        loop {
            let is_frozen = inner.is_frozen;
            let Some(wire) = inner.wires.get_mut(&number) else { return Step::End };
            if wire.parcels.front().is_some_and(|(at, _)| *at <= now)
                && let Some((_, parcel)) = wire.parcels.pop_front()
            {
                return Step::Hand(parcel);
            }
            let is_due = wire.requests.front().is_some_and(|(at, _)| *at <= now) && !is_frozen;
            let request = if is_due { wire.requests.pop_front() } else { None };
            let Some((_, request)) = request else {
                let asked = wire.requests.front().filter(|_| !is_frozen).map(|(at, _)| *at);
                let told = wire.parcels.front().map(|(at, _)| *at);
                return Step::Wait(asked.into_iter().chain(told).min());
            };
            let answer = inner.serve(request, self, now);
            let way = inner.way();
            if let (Some(answer), Some(wire)) = (answer, inner.wires.get_mut(&number)) {
                wire.add_parcel(now + way, answer);
            }
        }
    }

    /// Deletes a key, whatever is there. Whether anything was.
    pub(super) fn erase(&self, key: &LockKey) -> bool {
        self.inner().state.erase(key.name(), self.clock.now())
    }

    /// Every holder asks here soon whether it still has its lock.
    pub(super) fn call_holders(&self) {
        for end in self.ends() {
            end.call_holders();
        }
    }
}

/// What was on its way to a server and from it.
type Lost = (VecDeque<(Moment, Request)>, VecDeque<(Moment, Parcel)>);

impl Inner {
    /// How long the next message takes.
    fn way(&mut self) -> Duration {
        let (usual, rare) = JITTER;
        let extra = self.jitter.as_mut().map_or(0, |random| {
            let most = if random.u8(0..30) == 0 { rare } else { usual };
            random.u64(0..=most)
        });
        self.delay / 2 + Duration::from_millis(extra)
    }

    /// Does what is asked. The answer, if there is one.
    fn serve(&mut self, request: Request, server: &Server, now: Moment) -> Option<Parcel> {
        if let Some(answer) = &self.refusal {
            return request.failed(NodeError::Refused(answer.clone()));
        }
        let (command, recipient, sent) = match request {
            Request::Publish(wakeup) => {
                let channel = crate::protocol::wakeup::channel(wakeup.subject.token.manager());
                let way = self.way();
                let mut wires = self.wires.values_mut().filter(|wire| wire.hears(&channel));
                wires.next()?.add_parcel(now + way, Parcel::Wakeup(wakeup));
                return None;
            }
            Request::Command { command, recipient, sent } => (command, recipient, sent),
        };
        let (way, time) = (self.way(), server.time());
        let Self { state, wires, .. } = self;
        let (reply, seen) = state.execute(server.clock.now(), &command, &mut |channel, wakeup| {
            let Some(wire) = wires.values_mut().find(|wire| wire.hears(channel)) else { return 0 };
            let notice = match wakeup.notice {
                Notice::Claimed(claim) => Notice::Claimed(Claim { begun: time, ..claim }),
                other => other,
            };
            wire.add_parcel(now + way, Parcel::Wakeup(Wakeup { notice, ..wakeup }));
            1
        });
        let ballot = command.fence.map(|ballot| (Arc::clone(&command.subject), ballot));
        Some(Parcel::Answer { recipient, sent, outcome: Ok(Executed { reply, seen, time, ballot }) })
    }
}

impl Wire {
    /// Takes away what is on its way.
    fn empty(&mut self) -> Lost {
        (mem::take(&mut self.requests), mem::take(&mut self.parcels))
    }

    /// Whether a message on that channel comes here.
    fn hears(&self, channel: &str) -> bool {
        self.listens && !self.is_cut && self.channel == channel
    }

    /// Adds what comes after all the others.
    fn add_parcel(&mut self, at: Moment, parcel: Parcel) {
        let at = self.parcels.back().map_or(at, |(last, _)| at.max(*last));
        self.parcels.push_back((at, parcel));
        self.wake();
    }

    /// The courier looks again.
    fn wake(&self) {
        // One that is gone has none.
        if let Some(end) = self.end.upgrade() {
            end.wake();
        }
    }
}

impl Request {
    fn recipient(self) -> Option<Recipient> {
        match self {
            Self::Command { recipient, .. } => Some(recipient),
            Self::Publish(_) => None,
        }
    }

    fn failed(self, error: NodeError) -> Option<Parcel> {
        match self {
            Self::Command { recipient, sent, .. } => Some(Parcel::Answer { recipient, sent, outcome: Err(error) }),
            Self::Publish(_) => None,
        }
    }
}

impl Parcel {
    fn recipient(self) -> Option<Recipient> {
        match self {
            Self::Answer { recipient, .. } => Some(recipient),
            Self::Wakeup(_) => None,
        }
    }
}
