//! What goes wrong, and how.

use super::agenda::Event;
use super::link::Connection;
use super::network::{Network, Step, World};
use super::telling::client_name;
use crate::clock::Instant;
use crate::node::Verb;
use fastrand::Rng;
use std::time::Duration;

/// How often each kind of trouble strikes in one run, at the most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// A connection breaks. Requests under way are lost or arrive late; the answers are lost.
    pub(super) cuts: u32,
    /// A server stops for a while.
    pub(super) freezes: u32,
    /// A server restarts with what it knew.
    pub(super) restarts: u32,
    /// A server restarts and knows nothing, see [`Fault::Restart`].
    pub(super) wipes: u32,
    /// A process stops for a while.
    pub(super) pauses: u32,
    /// A process ends without a word.
    pub(super) crashes: u32,
    /// One in four commands of this kind has its connection cut while it is under way.
    pub(super) targets: Option<fn(Verb) -> bool>,
    /// Until when it can begin, in milliseconds.
    pub(super) until: u64,
    /// The longest time that a freeze or a pause takes, in milliseconds.
    pub(super) longest: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Cut {
        link: usize,
    },
    Freeze {
        server: usize,
        for_: Duration,
    },
    /// `wipes`: its memory is lost. Amnesia breaks any quorum, and a server cannot know that it has it: so a wiped one
    /// stays away until no lease that it gave can count any more, as the Redis text on distributed locks asks for.
    Restart {
        server: usize,
        for_: Duration,
        wipes: bool,
    },
    Pause {
        client: usize,
        for_: Duration,
    },
    Crash {
        client: usize,
    },
}

impl Faults {
    pub(super) const NONE: Self =
        Self { cuts: 0, freezes: 0, restarts: 0, wipes: 0, pauses: 0, crashes: 0, targets: None, until: 0, longest: 0 };

    pub(super) const fn are_none(&self) -> bool {
        self.cuts + self.freezes + self.restarts + self.wipes + self.pauses + self.crashes == 0
            && self.targets.is_none()
    }

    /// Draws when what happens, and tells when the last of it is over.
    pub(super) fn plan(&self, random: &mut Rng, network: &Network, longest_ttl: Duration) -> Instant {
        let (clients, servers, links) = network.world().sizes();
        let mut end = network.now();
        let mut strike = |random: &mut Rng, most: u32, fault: &mut dyn FnMut(&mut Rng) -> (Fault, Duration)| {
            for _ in 0..random.u32(0..=most) {
                let at = network.now().after(Duration::from_millis(random.u64(0..=self.until)));
                let (fault, lasts) = fault(random);
                network.plan(at, fault);
                end = end.max(at.after(lasts));
            }
        };
        let some_time = |random: &mut Rng| Duration::from_millis(random.u64(1..=self.longest.max(1)));
        let second = Duration::from_secs(1);
        strike(random, self.cuts, &mut |random| (Fault::Cut { link: random.usize(0..links) }, second));
        strike(random, self.freezes, &mut |random| {
            let for_ = some_time(random);
            (Fault::Freeze { server: random.usize(0..servers), for_ }, for_)
        });
        strike(random, self.restarts, &mut |random| {
            let for_ = some_time(random);
            (Fault::Restart { server: random.usize(0..servers), for_, wipes: false }, for_ + second)
        });
        strike(random, self.wipes, &mut |random| {
            // The clock of a server may be slow.
            let for_ = longest_ttl + longest_ttl / 50 + second;
            (Fault::Restart { server: random.usize(0..servers), for_, wipes: true }, for_ + second)
        });
        strike(random, self.pauses, &mut |random| {
            let for_ = some_time(random);
            (Fault::Pause { client: random.usize(0..clients), for_ }, for_)
        });
        strike(random, self.crashes, &mut |random| (Fault::Crash { client: random.usize(0..clients) }, second));
        end
    }
}

impl World {
    fn sizes(&self) -> (usize, usize, usize) {
        (self.clients.len(), self.servers.len(), self.links.len())
    }

    pub(super) fn strike(&mut self, fault: Fault, now: Instant) -> Option<Step> {
        self.trace_fault(fault);
        match fault {
            Fault::Cut { link } => {
                let late = Duration::from_millis(self.random.u64(0..200));
                self.cut(link, now, late);
            }
            Fault::Freeze { server, for_ } => {
                let server = &mut self.servers[server];
                server.frozen_until = server.frozen_until.max(now.after(for_));
            }
            Fault::Restart { server, for_, wipes } => self.restart(server, now.after(for_), wipes, now),
            Fault::Pause { client, for_ } => {
                let client = &mut self.clients[client];
                client.paused_until = client.paused_until.max(now.after(for_));
            }
            Fault::Crash { client } => {
                self.crash(client, now);
                return Some(Step::Crash { client });
            }
        }
        None
    }

    /// Cuts a connection that carries what the run is aimed at.
    pub(super) fn aim(&mut self, link: usize, verb: Verb, now: Instant) {
        if self.targets.is_some_and(|is_target| is_target(verb)) && self.random.u8(0..4) == 0 {
            let at = self.later(now, link);
            self.agenda.add(at, Event::Fault(Fault::Cut { link }));
        }
    }

    fn trace_fault(&self, fault: Fault) {
        self.trace.line(|_| match fault {
            Fault::Cut { link } => format!("!! {} is cut", self.name(link)),
            Fault::Freeze { server, for_ } => format!("!! node {} freezes for {for_:?}", server + 1),
            Fault::Restart { server, for_, wipes } => {
                format!("!! node {} {} for {for_:?}", server + 1, if wipes { "is wiped" } else { "restarts" })
            }
            Fault::Pause { client, for_ } => format!("!! {} pauses for {for_:?}", client_name(client)),
            Fault::Crash { client } => format!("!! {} crashes", client_name(client)),
        });
    }

    /// Breaks the connection. Some requests under way survive and arrive within `late`.
    fn cut(&mut self, link: usize, now: Instant, late: Duration) {
        let Connection::Up(wire) = self.links[link].state else { return };
        if self.wires[wire].cut.is_some() {
            return;
        }
        let survivors = self.random.usize(0..=self.wires[wire].under_way.len());
        self.wires[wire].cut(survivors, now.after(late));
        // Either side may take a while to notice; until then the client sends into the void, and the server counts a
        // subscriber that hears nothing.
        let (client, server) =
            if self.random.bool() { (0, 0) } else { (self.random.u64(0..200), self.random.u64(0..500)) };
        self.agenda.add(now.after(Duration::from_millis(client)), Event::Broken { wire });
        self.agenda.add(now.after(Duration::from_millis(server)), Event::Forgotten { wire });
    }

    fn cut_all(&mut self, now: Instant, late: Duration, is_meant: impl Fn(usize, usize) -> bool) {
        for link in 0..self.links.len() {
            if is_meant(self.links[link].client, self.links[link].server) {
                self.cut(link, now, late);
            }
        }
    }

    fn restart(&mut self, server: usize, until: Instant, wipes: bool, now: Instant) {
        // What survives a cut finds nobody there.
        self.cut_all(now, Duration::ZERO, |_, other| other == server);
        let cut = (0..self.wires.len()).filter(|wire| self.links[self.wires[*wire].link].server == server);
        let cut: Vec<_> = cut.collect();
        for wire in cut {
            self.wires[wire].lose_all();
            self.servers[server].forget(wire);
        }
        let server = &mut self.servers[server];
        server.down_until = server.down_until.max(until);
        server.frozen_until = now;
        if wipes {
            server.wipe();
        }
    }

    fn crash(&mut self, client: usize, now: Instant) {
        let late = Duration::from_millis(self.random.u64(0..200));
        self.cut_all(now, late, |other, _| other == client);
        self.clients[client].is_crashed = true;
    }
}
