//! Carries commands, answers and wake-ups between managers and servers, with delays, in the order of each connection.

use super::agenda::{Agenda, Entry, Event, Replied, Request};
use super::breaking::Breaks;
use super::faults::Fault;
use super::link::{Asked, Client, Connection, Link};
use super::profile::Profile;
use super::server::Server;
use super::theft::Theft;
use super::trace::Trace;
use super::tree::Wishes;
use super::wire::Wire;
use crate::error::NodeError;
use crate::lock::OwnerToken;
use crate::node::abstention::Abstention;
use crate::node::server_facts::ServerFacts;
use crate::node::{Environment, Recipient};
use crate::protocol::command::{Command, Deliver, Notice, Subject, Verb, Wakeup};
use crate::protocol::quorum::Quorum;
use crate::protocol::rules::Rules;
use crate::protocol::wakeup::channel;
use crate::time::clock::{Clock, Instant};
use fastrand::Rng;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

/// Delays of messages, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    /// Largest minimum delay of a connection.
    pub(super) latency: u64,
    /// Largest additional delay of a message.
    pub(super) jitter: u64,
    /// Largest additional delay of one message in thirty.
    pub(super) spike: u64,
}

impl Delays {
    /// Returns the longest time of a message and its answer.
    pub(super) const fn round_trip(self) -> Duration {
        Duration::from_millis(2 * (self.latency + self.jitter + self.spike))
    }
}

/// Value of `stopped_at` while the time advances.
const RUNS: u64 = u64::MAX;

/// Simulated network, shared by all clients, the observer and the run.
pub(super) struct Network {
    /// True time.
    pub(super) clock: Clock,
    pub(super) trace: Arc<Trace>,
    /// Time while it stands still, in nanoseconds from the origin.
    stopped_at: AtomicU64,
    world: Mutex<World>,
}

/// State of the network: servers, clients, connections and future events.
pub(super) struct World {
    pub(super) agenda: Agenda,
    pub(super) random: Rng,
    pub(super) delays: Delays,
    pub(super) targets: Option<fn(Verb) -> bool>,
    raises: Option<fn(Verb) -> bool>,
    pub(super) quorum: Quorum,
    pub(super) rules: Rules,
    /// `true` if only a minority of the servers loses something.
    pub(super) is_minority: bool,
    /// `true` if all servers have just started. The observer then does not excuse servers that abstain.
    pub(super) is_cold: bool,
    /// `true` if no holder receives messages about waiters.
    is_deaf: bool,
    /// Longest time to reconnect, in milliseconds.
    pub(super) away: u64,
    pub(super) servers: Vec<Server>,
    pub(super) clients: Vec<Client>,
    pub(super) links: Vec<Link>,
    pub(super) wires: Vec<Wire>,
    /// Tokens whose keys were taken away at so many servers that another token can acquire the lock.
    pub(super) robbed: HashMap<OwnerToken, Theft>,
    /// Tokens that have requested new leases. The value is `true` if the token was robbed since then.
    pub(super) robbed_since_asked: HashMap<OwnerToken, bool>,
    /// Times at which a server last handed a lock to a token.
    pub(super) handed_at: HashMap<OwnerToken, Instant>,
    /// Tokens whose keys were taken away so far at too few servers for another token to acquire the lock.
    pub(super) weakened: HashSet<OwnerToken>,
    /// Locks that an operator breaks.
    pub(super) broken: Breaks,
    pub(super) wishes: Wishes,
    /// Chance that a message about a broken lock is lost, in percent.
    pub(super) losses: u8,
    pub(super) trace: Arc<Trace>,
}

/// Returns the address of a server.
pub(super) fn label(server: usize) -> String {
    format!("node {}", server + 1)
}

/// Event that must be handled outside of the network, because its handler may call the network.
pub(super) enum Step {
    Deliver(Deliver, Wakeup),
    Crash {
        client: usize,
    },
    Look,
    /// No event is due before this time.
    Wait(Instant),
}

impl Network {
    pub(super) fn new(clock: Clock, random: Rng, profile: &Profile, servers: Vec<Server>, trace: Arc<Trace>) -> Self {
        let world = World {
            agenda: Agenda::default(),
            random,
            delays: profile.delays,
            targets: profile.faults.targets,
            raises: profile.faults.raises,
            quorum: Quorum::of(servers.len(), profile.amnesia),
            rules: profile.rules,
            is_minority: profile.faults.is_minority || profile.is_cold,
            is_cold: profile.is_cold,
            is_deaf: profile.is_deaf,
            away: profile.faults.away.max(99),
            servers,
            clients: Vec::new(),
            links: Vec::new(),
            wires: Vec::new(),
            robbed: HashMap::new(),
            robbed_since_asked: HashMap::new(),
            handed_at: HashMap::new(),
            weakened: HashSet::new(),
            broken: Breaks::default(),
            wishes: Wishes::default(),
            losses: profile.losses,
            trace: Arc::clone(&trace),
        };
        Self { clock, trace, stopped_at: AtomicU64::new(RUNS), world: Mutex::new(world) }
    }

    /// Returns the true time.
    pub(super) fn now(&self) -> Instant {
        match self.stopped_at.load(Ordering::Relaxed) {
            RUNS => self.clock.now(),
            nanos => Instant::from_origin(Duration::from_nanos(nanos)),
        }
    }

    /// Runs `happen` at a single point in time.
    ///
    /// Reading the clock of the runtime takes as long as most events, so the clock is read once.
    pub(super) fn at_once<T>(&self, happen: impl FnOnce() -> T) -> T {
        let nanos = self.clock.now().nanos_since(Instant::from_origin(Duration::ZERO));
        self.stopped_at.store(nanos, Ordering::Relaxed);
        let outcome = happen();
        self.stopped_at.store(RUNS, Ordering::Relaxed);
        outcome
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Adds a manager, and returns its number.
    pub(super) fn add_client(&self, environment: &Environment) -> usize {
        let mut world = self.world();
        world.clients.push(Client::new(environment, self.now()));
        world.clients.len() - 1
    }

    /// Starts to connect `client`, whose process starts at `starts_at`, to `server`.
    pub(super) fn add_link(
        &self,
        (client, starts_at): (usize, Instant),
        server: usize,
        environment: Environment,
    ) -> usize {
        let mut world = self.world();
        let most = world.delays.latency;
        let latency = world.random.u64(0..=most);
        let has_pushes = world.random.u8(0..3) > 0;
        let link = world.links.len();
        world.links.push(Link {
            client,
            server,
            server_facts: ServerFacts::new(&label(server), Arc::clone(&environment.servers)),
            environment,
            state: Connection::Starting,
            abstention: Abstention::default(),
            epoch: 0,
            is_wanted: false,
            is_listening: false,
            has_pushes,
            latency,
            unanswered: VecDeque::new(),
        });
        let at = world.later(starts_at, link);
        world.agenda.add(at, Event::Connected { link });
        link
    }

    /// Plans a fault.
    pub(super) fn plan(&self, at: Instant, fault: Fault) {
        self.world().agenda.add(at, Event::Fault(fault));
    }

    /// Plans a look of the observer.
    pub(super) fn look_at(&self, at: Instant) {
        self.world().agenda.add(at, Event::Look);
    }

    /// Sends a command. Its answer, or the failure, goes to `recipient`.
    pub(super) fn send(&self, link: usize, command: Command, recipient: Recipient) {
        self.world().send(link, command, recipient, self.now());
    }

    /// Publishes `notice` to the manager of the token in `subject`. Returns `false` without a connection.
    pub(super) fn publish(&self, link: usize, subject: &Subject, notice: Notice) -> bool {
        let (mut world, now) = (self.world(), self.now());
        let Connection::Up(wire) = world.links[link].state else { return false };
        let subject = Subject::new(subject.key.clone(), subject.token);
        world.request(wire, Request::Publish(Wakeup { subject, notice }), now);
        true
    }

    /// Subscribes a link to wake-ups, on this and all later connections.
    pub(super) fn listen(&self, link: usize) {
        self.world().listen(link, self.now());
    }

    /// Runs the due events, up to the first event that must be handled outside.
    pub(super) fn step(&self, sleeper: &Waker) -> Step {
        let (mut world, now) = (self.world(), self.now());
        while let Some(entry) = world.agenda.due(now) {
            if let Some(step) = world.happen(entry, now) {
                return step;
            }
        }
        Step::Wait(world.agenda.sleep(sleeper, now))
    }
}

impl World {
    /// Returns the arrival time of a lone message that is sent at `now` on `link`.
    pub(super) fn later(&mut self, now: Instant, link: usize) -> Instant {
        let Delays { jitter, spike, .. } = self.delays;
        let extra = if self.random.u8(0..30) == 0 { spike } else { jitter };
        // Delays are whole milliseconds, as in timers.
        now.after(Duration::from_millis(self.links[link].latency + self.random.u64(0..=extra)))
    }

    fn send(&mut self, link: usize, command: Command, recipient: Recipient, now: Instant) {
        let Connection::Up(wire) = self.links[link].state else {
            return recipient.answer(Err(NodeError::Unreachable("there is no connection".into())));
        };
        let sent = self.links[link].server_facts.now();
        let proposal = command.proposal();
        self.links[link].unanswered.push_back(Asked { recipient, sent, proposal });
        self.trace_send(link, &command);
        if matches!(command.verb, Verb::Extend { .. } | Verb::Renew { .. }) {
            self.robbed_since_asked.insert(command.subject.token, false);
        }
        self.aim(link, command.verb, now);
        self.request(wire, Request::Command(command), now);
    }

    fn listen(&mut self, link: usize, now: Instant) {
        let was_wanted = std::mem::replace(&mut self.links[link].is_wanted, true);
        if let Connection::Up(wire) = self.links[link].state
            && !was_wanted
        {
            self.request(wire, Request::Subscribe, now);
        }
    }

    /// Puts a request on a connection. If that was cut or the process has crashed, the request is lost.
    pub(super) fn request(&mut self, wire: usize, request: Request, now: Instant) {
        let link = self.wires[wire].link;
        let client = &self.clients[self.links[link].client];
        if self.wires[wire].cut.is_some() || client.is_crashed {
            return;
        }
        // A paused process sends after its pause.
        let left_at = now.max(client.paused_until);
        let at = self.later(left_at, link);
        let at = self.wires[wire].requests.arrival_in_order(at);
        let order = self.agenda.add(at, Event::Request { wire, request });
        self.wires[wire].under_way.push_back(order);
    }

    /// Runs one event.
    fn happen(&mut self, entry: Entry, now: Instant) -> Option<Step> {
        match entry.event {
            Event::Request { wire, .. } => self.arrive(entry, wire, now),
            Event::Reply { wire, .. } | Event::Push { wire, .. } => return self.deliver_to_client(entry, wire, now),
            Event::Broken { wire } => self.broken(entry, wire, now),
            Event::Forgotten { wire } => self.servers[self.links[self.wires[wire].link].server].forget(wire),
            Event::Connected { link } => self.connect(entry, link, now),
            Event::Fault(fault) => return self.strike(fault, now),
            Event::Look => return Some(Step::Look),
        }
        None
    }

    /// Handles a request that arrives at its server: it is executed, delayed or lost.
    fn arrive(&mut self, entry: Entry, wire: usize, now: Instant) {
        let server = &self.servers[self.links[self.wires[wire].link].server];
        let held_back = match self.wires[wire].cut {
            Some(cut) if entry.order >= cut.lost_from => return,
            Some(cut) => cut.arrive_at.max(server.frozen_until),
            None => server.frozen_until,
        };
        if now < held_back {
            return self.agenda.postpone(entry, held_back);
        }
        let is_reachable = server.down_until <= now;
        self.wires[wire].arrived(entry.order);
        if let Event::Request { request, .. } = entry.event
            && is_reachable
        {
            self.serve(wire, request, now);
        }
    }

    /// Executes a request at its server, and sends the answer and the wake-ups.
    fn serve(&mut self, wire: usize, request: Request, now: Instant) {
        let link = &self.links[self.wires[wire].link];
        let reply = match request {
            Request::Subscribe => {
                self.servers[link.server].subscribe(&self.clients[link.client].channel, wire);
                Replied::Subscribed
            }
            Request::Publish(wakeup) => {
                let channel = channel(wakeup.subject.token.manager());
                if let Some(wire) = self.servers[link.server].subscriber(&channel) {
                    self.push(wire, wakeup, now);
                }
                return;
            }
            Request::Command(command) => {
                let server = link.server;
                self.servers[server].note_late(&command, self.wires[wire].cut.is_some());
                let standing = self.standing(server, &command, now);
                self.wishes.note(&command.subject);
                // The notes before and after the execution are for the observer: breaks, yields, and needless
                // notifications.
                let executed = self.servers[server].execute(now, &command);
                self.note_break(server, &command, &executed.reply, standing, now);
                self.note_yield(&command, now);
                self.trace_execution(wire, &command, &executed);
                for (wire, wakeup) in executed.published {
                    if matches!(wakeup.notice, Notice::Granted | Notice::Claimed(_)) {
                        self.handed_at.insert(wakeup.subject.token, now);
                    }
                    self.note_free(server, command.subject.token, &wakeup);
                    self.push(wire, wakeup, now);
                }
                self.note_untold(server, &command);
                let may_raise = self.raises.is_some_and(|may_raise| may_raise(command.verb));
                if may_raise && self.random.u8(0..4) == 0 {
                    return self.reply(wire, Replied::Raised, now);
                }
                Replied::Command { reply: executed.reply, seen: executed.seen, time: executed.time }
            }
        };
        self.reply(wire, reply, now);
    }

    /// Sends a wake-up to a client, unless the profile suppresses or loses it.
    pub(super) fn push(&mut self, wire: usize, wakeup: Wakeup, now: Instant) {
        if self.is_deaf && matches!(wakeup.notice, Notice::Contended { .. }) {
            return;
        }
        let is_of_a_break = matches!(wakeup.notice, Notice::Revoked { .. } | Notice::Stopped);
        if is_of_a_break && self.losses > 0 && self.random.u8(0..100) < self.losses {
            return;
        }
        let at = self.later(now, self.wires[wire].link);
        let at = self.wires[wire].pushes.arrival_in_order(at);
        self.agenda.add(at, Event::Push { wire, wakeup, sent: now });
    }

    /// Sends an answer to a client. If wake-ups share its connection, the answer does not overtake earlier ones.
    pub(super) fn reply(&mut self, wire: usize, reply: Replied, now: Instant) {
        let link = self.wires[wire].link;
        let mut at = self.later(now, link);
        if self.links[link].has_pushes {
            at = at.max(self.wires[wire].pushes.0);
        }
        let at = self.wires[wire].replies.arrival_in_order(at);
        self.agenda.add(at, Event::Reply { wire, reply });
    }
}
