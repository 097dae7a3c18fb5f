//! Servers that may have forgotten a lock: restarts, replaced data, and processes that meet young servers.
//!
//! Two clients want one lock. The *holder* reaches only a bare majority of the servers. The *rival* reaches all of them. Either knows the
//! servers from before, or meets them one by one. A server grants the lock if it is free, and a client counts the grant as a lease unless
//! the server abstains for it ([`abstains_for`]).
//!
//! Time passes in ticks of ten seconds. Commands take no time: an answer that arrives later proves no longer lease. Connections end with
//! the process or the data of their server. Properties:
//!
//! - Two clients never hold the lock at once.
//! - In a cold start, a quorum votes for a client that has reached all servers: the client does not wait. This holds as long as all servers
//!   are young. Then the last server may wait for the first ones, for at most [`SAME_START`].
//!
//! The model assumes what the protocol assumes:
//!
//! - After a cold start, at most one server loses its data while servers are young, and not within [`SAME_START`] of the start of another
//!   one. A second one could form a quorum of young servers.
//! - A copy that replaces the data of a server has the last receipt of neither client. Connected clients renew their receipts every tick,
//!   but a client that was away when the copy was made would take the copy for the latest data.

mod known;
mod server;
mod state;

pub use known::{DataSet, Identity, Known, LONGEST, MEASURES, Marker, SAME_START, abstains_for};
pub use server::Fault;
pub use state::State;

use crate::rule::Rule;
use crate::search::Model;
use known::quorum;
use server::{CLIENTS, Data, Server};
use state::{Column, Link};
use std::fmt;

/// Servers and the faults that they may suffer.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Restarts {
    /// Number of servers, at most 5. A majority is the quorum.
    pub servers: usize,
    /// If `true`, all servers have just started, within [`SAME_START`] of each other. Otherwise all have run for long.
    pub is_cold: bool,
    /// If `true`, the settings of all servers promise that every command is written to disk.
    pub are_durable: bool,
    /// If `true`, clients may read and write the markers of servers.
    pub has_markers: bool,
    /// If `true`, the rival knows no server at the beginning. It connects to servers and asks them within one tick.
    pub is_newcomer: bool,
    /// Faults that may happen.
    pub kinds: &'static [Fault],
    /// Largest number of faults.
    pub faults: u8,
    /// Largest number of connections of the rival that break, while their server continues.
    pub cuts: u8,
    /// Largest number of times that each client asks all servers that it is connected to.
    pub asks: u8,
    /// The rule that is switched off.
    pub without: Option<Rule>,
}

/// Client that reaches a bare majority of the servers.
const HOLDER: usize = 0;
/// Client that reaches all servers.
const RIVAL: usize = 1;

/// Time of the beginning. Servers that started at 0 are not young.
const BEGIN: u8 = LONGEST + 2;

/// Number of ticks of a run. Too small: a lease that was granted before the last fault would not end.
const TICKS: u8 = LONGEST + 2;

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the same few numbers everywhere")]
pub enum Action {
    /// Time passes.
    Tick,
    /// A client connects to a server.
    Connect { client: usize, server: usize },
    /// A client asks all servers that it is connected to for the lock, or renews its leases.
    Ask { client: usize },
    /// The connection of the rival breaks.
    Cut { server: usize },
    /// A copy of the data of a server is made.
    Copy { server: usize },
    /// A fault of a server. All connections to it end.
    Suffer { server: usize, fault: Fault },
}

impl Model for Restarts {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let late_sets = if self.is_cold { 1 << self.servers } else { 1 };
        (0..late_sets).map(|late| self.started(late)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.asked == [self.asks; CLIENTS] {
            return;
        }
        if state.now < BEGIN + TICKS && !self.is_arriving(state) {
            actions.push(Action::Tick);
        }
        for client in (0..CLIENTS).filter(|client| state.asked[*client] < self.asks) {
            let servers = 0..self.reached_by(client);
            let is_away = |server: &usize| !state.columns[*server].links[client].is_connected;
            actions.extend(servers.filter(is_away).map(|server| Action::Connect { client, server }));
            actions.push(Action::Ask { client });
        }
        for server in 0..self.servers {
            if state.cuts < self.cuts && state.columns[server].links[RIVAL].is_connected {
                actions.push(Action::Cut { server });
            }
            self.faults_of(state, server, actions);
        }
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut state = *state;
        match action {
            Action::Tick => self.tick(&mut state),
            Action::Connect { client, server } => self.connect(&mut state, client, server),
            Action::Ask { client } => self.ask(&mut state, client),
            Action::Cut { server } => {
                state.cuts += 1;
                disconnect(&mut state.columns[server].links[RIVAL], state.now);
            }
            Action::Copy { server } => {
                let server = &mut state.columns[server].server;
                server.copy = Some(server.data);
            }
            Action::Suffer { server, fault } => {
                state.faults += 1;
                let column = &mut state.columns[server];
                column.server.suffer(fault, state.now);
                column.links.iter_mut().for_each(|link| disconnect(link, state.now));
            }
        }
        state
    }

    fn canonical(&self, mut state: State) -> State {
        // The holder does not reach the last servers.
        let (reached, others) = state.columns[..self.servers].split_at_mut(quorum(self.servers));
        reached.sort_unstable();
        others.sort_unstable();
        state
    }

    fn encode(&self, state: &State, bytes: &mut Vec<u8>) {
        state.encode(self.servers, bytes);
    }

    fn decode(&self, bytes: &mut &[u8]) -> State {
        State::decode(self.servers, bytes)
    }

    fn violation(&self, state: &State, _stuck: bool) -> Option<String> {
        let has_leases = |client: usize| {
            let leases = state.columns.iter().filter(|column| state.now < column.links[client].lease).count();
            leases >= quorum(self.servers)
        };
        if (0..CLIENTS).all(has_leases) {
            return Some("both clients hold the lock at once".to_owned());
        }
        let known = self.known(state, RIVAL);
        let votes = |server: &usize| abstains_for(&known, *server, state.now, self.without) == 0;
        let has_reached_all = known.iter().all(Option::is_some);
        let waits = has_reached_all && (0..self.servers).filter(votes).count() < quorum(self.servers);
        let are_all_young =
            state.columns[..self.servers].iter().all(|column| state.now < column.server.started + LONGEST);
        (waits && state.faults == 0 && are_all_young)
            .then(|| "the rival waits, and no server has forgotten a lock".to_owned())
    }

    fn show(&self, state: &State) -> String {
        let servers = state.columns[..self.servers].iter().enumerate().map(|(server, column)| {
            let Server { run, started, data, .. } = column.server;
            let owner =
                data.owner.map_or("free".to_owned(), |(owner, until)| format!("{} until {until}", name(owner.into())));
            let links = column.links.iter().enumerate().filter(|(_, link)| link.known.is_some());
            let links = links.map(|(client, link)| {
                let known = self.known(state, client);
                let left = abstains_for(&known, server, state.now, self.without);
                let away = if link.is_connected { "" } else { ", away" };
                format!(" [{}: lease until {}, abstains for {left}{away}]", name(client), link.lease)
            });
            format!("s{server} process {run} of {started}, {owner}{}", links.collect::<String>())
        });
        [format!("at {}", state.now)].into_iter().chain(servers).collect::<Vec<_>>().join(" | ")
    }
}

impl Restarts {
    /// Returns the state in which the servers with a bit in `late` have started later than the others, if all have just started.
    fn started(&self, late: usize) -> State {
        let mut state = State { now: BEGIN, ..State::default() };
        for (server, column) in state.columns[..self.servers].iter_mut().enumerate() {
            let start = if late >> server & 1 == 1 { BEGIN } else { BEGIN - SAME_START };
            // Data without a marker gets one at the first connection.
            let marker = (!self.is_cold && self.has_markers).then_some((1, 0));
            column.server = Server {
                run: 1,
                started: if self.is_cold { start } else { 0 },
                set: DataSet { id: 1, previous: None },
                data: Data { marker, ..Data::default() },
                copy: None,
                markers: marker.is_some().into(),
            };
        }
        (0..self.reached_by(HOLDER)).for_each(|server| self.connect(&mut state, HOLDER, server));
        if !self.is_newcomer {
            (0..self.servers).for_each(|server| self.connect(&mut state, RIVAL, server));
        }
        state
    }

    /// Returns the number of servers that `client` reaches, from the first on.
    fn reached_by(&self, client: usize) -> usize {
        if client == HOLDER { quorum(self.servers) } else { self.servers }
    }

    /// Returns `true` if the rival is new and has not asked yet.
    fn is_arriving(&self, state: &State) -> bool {
        let has_come = state.columns.iter().any(|column| column.links[RIVAL].known.is_some());
        self.is_newcomer && has_come && state.asked[RIVAL] == 0
    }

    fn known(&self, state: &State, client: usize) -> Vec<Option<Known>> {
        state.columns[..self.servers].iter().map(|column| column.links[client].known).collect()
    }

    fn faults_of(&self, state: &State, server: usize, actions: &mut Vec<Action>) {
        let of = state.columns[server].server;
        let is_copied = state.columns.iter().any(|column| column.server.copy.is_some());
        if self.kinds.contains(&Fault::RestartOnCopy) && !is_copied {
            actions.push(Action::Copy { server });
        }
        let others = (0..self.servers).filter(|other| *other != server);
        let started_together =
            others.map(|other| &state.columns[other].server).any(|other| state.now <= other.started + SAME_START);
        if state.faults < self.faults && !started_together {
            let links = &state.columns[server].links;
            let is_outdated = |copy: Data| {
                let known = links.iter().map(|link| link.known.and_then(|known| known.marker));
                copy.receipts.iter().zip(known).all(|(old, marker)| marker.is_none_or(|(_, receipt)| receipt != *old))
            };
            let is_possible = |fault: &&Fault| **fault != Fault::RestartOnCopy || of.copy.is_some_and(is_outdated);
            let possible = self.kinds.iter().filter(is_possible);
            actions.extend(possible.map(|fault| Action::Suffer { server, fault: *fault }));
        }
    }

    /// Lets a tick pass. Connected clients renew their receipts.
    fn tick(&self, state: &mut State) {
        state.now += 1;
        for Column { server, links } in &mut state.columns[..self.servers] {
            for (link, receipt) in links.iter_mut().zip(&mut server.data.receipts) {
                let marker = link.known.as_mut().and_then(|known| known.marker.as_mut());
                if let Some((_, number)) = marker.filter(|_| link.is_connected) {
                    (*number, *receipt) = (state.now, state.now);
                }
            }
        }
    }

    fn connect(&self, state: &mut State, client: usize, server: usize) {
        let Column { server, links } = &mut state.columns[server];
        let identity = server.identify(client, state.now, self.are_durable, self.has_markers);
        let link = &mut links[client];
        link.known = Some(Known::connected(link.known, &identity, state.now, self.without));
        link.is_connected = true;
    }

    fn ask(&self, state: &mut State, client: usize) {
        state.asked[client] += 1;
        let (known, now) = (self.known(state, client), state.now);
        for server in 0..self.servers {
            let Column { server: of, links } = &mut state.columns[server];
            let link = &mut links[client];
            if !link.is_connected {
                continue;
            }
            let is_proven = now < link.lease;
            let abstains = abstains_for(&known, server, now, self.without) > 0;
            match of.acquire(client, now) {
                None => link.lease = 0,
                // The client has proven the lease before the server abstained.
                Some(true) if abstains && (is_proven || self.without == Some(Rule::FindingProvesNothing)) => {
                    link.lease = now + LONGEST;
                }
                Some(_) if abstains => {}
                Some(_) => link.lease = now + LONGEST,
            }
        }
    }
}

fn disconnect(link: &mut Link, now: u8) {
    if let Some(known) = link.known.as_mut().filter(|_| link.is_connected) {
        known.disconnected(now);
    }
    link.is_connected = false;
}

const fn name(client: usize) -> &'static str {
    if client == HOLDER { "holder" } else { "rival" }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Tick => write!(f, "ten seconds pass"),
            Self::Connect { client, server } => write!(f, "the {} connects to server {server}", name(client)),
            Self::Ask { client } => write!(f, "the {} asks for the lock", name(client)),
            Self::Cut { server } => write!(f, "the connection of the rival to server {server} breaks"),
            Self::Copy { server } => write!(f, "the data of server {server} is copied"),
            Self::Suffer { server, fault } => write!(f, "server {server} suffers {fault:?}"),
        }
    }
}
