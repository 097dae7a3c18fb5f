//! Faults of servers, connections and processes.

use super::actor;
use super::agenda::{Event, Replied};
use super::link::{Connection, Link};
use super::network::{Step, World};
use super::telling::client_name;
use crate::protocol::command::Verb;
use crate::time::clock::Instant;
use std::time::Duration;

/// Largest number of faults of each kind in one run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// A connection breaks. Pending requests are lost or arrive late, and the answers are lost.
    pub(super) cuts: u32,
    /// A server freezes for a while.
    pub(super) freezes: u32,
    /// A server restarts with its data.
    pub(super) restarts: u32,
    /// A server restarts without its data, see [`Fault::Restart`].
    pub(super) wipes: u32,
    /// A server restarts without its data after a short time.
    pub(super) forgets: u32,
    /// The servers restart in turn without their data. The next restart follows two longest leases after the previous
    /// server has returned.
    pub(super) rolls: u32,
    /// All servers are unreachable together, for longer than they are reachable in between.
    pub(super) blinks: u32,
    /// A server becomes the replica of an empty one, and then a master again. Its process and its connections continue.
    pub(super) replacements: u32,
    /// The address of a server leads to its replica, which has missed everything.
    pub(super) promotions: u32,
    /// The address of a server leads to its replica, which has missed nothing.
    pub(super) fail_overs: u32,
    /// A process pauses for a while.
    pub(super) pauses: u32,
    /// The tasks of a process pause for a while, because one of them blocks their thread.
    pub(super) blocks: u32,
    /// A process crashes.
    pub(super) crashes: u32,
    /// A forged message claims that a lock is broken.
    pub(super) lies: u32,
    /// All managers but the holder's receive a forged message that its lock was granted to it.
    pub(super) forgeries: u32,
    /// A register is set to a number far ahead of all clocks.
    pub(super) poisons: u32,
    /// Another program deletes or overwrites a key at some of the servers.
    pub(super) thefts: u32,
    /// The wall clock of a server is set forward.
    pub(super) steps: u32,
    /// One in four commands of this kind is executed and answered with an error, like a script that fails halfway.
    pub(super) raises: Option<fn(Verb) -> bool>,
    /// The connection of one in four commands of this kind is cut while the command is under way.
    pub(super) targets: Option<fn(Verb) -> bool>,
    /// Longest time to reconnect after a cut, in milliseconds.
    pub(super) away: u64,
    /// Earliest time of a fault, in milliseconds from the beginning of the run.
    pub(super) after: u64,
    /// Range of times of faults after the earliest one, in milliseconds.
    pub(super) until: u64,
    /// Longest freeze or pause, in milliseconds.
    pub(super) longest: u64,
    /// `true` if only a minority of the servers has faults.
    pub(super) is_minority: bool,
    /// `true` if one of three servers misses the first numbers and returns. The processes that have started end. Then
    /// another server loses its data, and the third is away.
    pub(super) loses_the_numbered: bool,
}

/// Fault that strikes at a planned time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Cut {
        link: usize,
    },
    Freeze {
        server: usize,
        for_: Duration,
    },
    /// With `wipes`, the server loses its memory.
    ///
    /// Data loss breaks any quorum, and a server cannot notice its own. A wiped server therefore stays away until all
    /// its leases have ended, as the Redis text on distributed locks requires. Otherwise the managers must handle the
    /// loss.
    Restart {
        server: usize,
        for_: Duration,
        wipes: bool,
    },
    Replace {
        server: usize,
    },
    Promote {
        server: usize,
        loses: bool,
    },
    Pause {
        client: usize,
        for_: Duration,
    },
    Block {
        client: usize,
        for_: Duration,
    },
    Crash {
        client: usize,
    },
    /// Forged message to the owner of the key at that server.
    Lie {
        key: usize,
        server: usize,
    },
    /// Forged message about the owner of the key at that server.
    Forge {
        key: usize,
        server: usize,
    },
    Poison {
        key: usize,
        server: usize,
    },
    /// Affects `servers` servers in a row. The key is overwritten for the given time, or else deleted.
    Theft {
        key: usize,
        first: usize,
        servers: usize,
        overwritten_for: Option<Duration>,
    },
    Step {
        server: usize,
        by: Duration,
    },
}

impl Faults {
    pub(super) const NONE: Self = Self {
        cuts: 0,
        freezes: 0,
        restarts: 0,
        wipes: 0,
        forgets: 0,
        rolls: 0,
        blinks: 0,
        replacements: 0,
        promotions: 0,
        fail_overs: 0,
        pauses: 0,
        blocks: 0,
        crashes: 0,
        lies: 0,
        forgeries: 0,
        poisons: 0,
        thefts: 0,
        steps: 0,
        raises: None,
        targets: None,
        away: 0,
        after: 0,
        until: 0,
        longest: 0,
        is_minority: false,
        loses_the_numbered: false,
    };

    /// Returns `true` if the run has no faults.
    pub(super) const fn are_none(&self) -> bool {
        let restarts = self.restarts + self.wipes + self.forgets + self.rolls + self.blinks;
        let servers = self.freezes + restarts + self.thefts + self.steps;
        let data = self.replacements + self.promotions + self.fail_overs;
        let strangers = self.lies + self.forgeries + self.poisons;
        servers + data + strangers + self.cuts + self.pauses + self.blocks + self.crashes == 0
            && self.targets.is_none()
            && self.raises.is_none()
            && !self.loses_the_numbered
    }

    /// Returns `true` if only a minority of the servers has faults, and no client has.
    pub(super) const fn are_minority_only(&self) -> bool {
        self.is_minority && self.pauses + self.blocks + self.crashes == 0 && !self.loses_the_numbered
    }

    /// Returns `true` if the registers of a minority of the servers are poisoned, and there are no other faults.
    pub(super) const fn only_poison_minority(&self) -> bool {
        self.is_minority && self.poisons > 0 && Self { poisons: 0, ..*self }.are_none()
    }

    /// Returns `true` if all faults are failovers of servers that keep their data.
    pub(super) const fn are_fail_overs(&self) -> bool {
        self.fail_overs > 0 && Self { fail_overs: 0, until: 0, longest: 0, ..*self }.are_none()
    }

    /// Returns `true` if keys may vanish under their holders.
    pub(super) const fn rob(&self) -> bool {
        self.thefts + self.steps > 0
    }

    /// Returns `true` if a server may lose all its data.
    pub(super) const fn lose_data(&self) -> bool {
        self.wipes + self.forget() > 0
    }

    /// Returns the largest number of restarts after which a server has lost data, or may have.
    pub(super) const fn forget(&self) -> u32 {
        self.forgets
            + self.rolls
            + self.replacements
            + self.promotions
            + self.fail_overs
            + self.loses_the_numbered as u32
    }
}

impl World {
    /// Returns the numbers of clients, servers and links.
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        (self.clients.len(), self.servers.len(), self.links.len())
    }

    /// Applies a fault. Returns a step if the fault must be handled outside of the network.
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
            // A manager that has never met the previous process trusts the new one, unless a majority of other servers
            // prevents it.
            Fault::Restart { server, wipes: true, .. } if !self.is_known(server) && !self.is_minority => {}
            Fault::Restart { server, for_, wipes } => self.restart(server, now.after(for_), wipes, now),
            // A manager that has never met the previous data trusts the new data, because the process has not just
            // started.
            Fault::Replace { server } if !self.is_known(server) => {}
            Fault::Replace { server } => self.replace(server, now),
            Fault::Promote { server, .. } if !self.is_known(server) => {}
            Fault::Promote { server, loses } => {
                self.restart(server, now, loses, now);
                self.servers[server].age();
                self.servers[server].replace();
            }
            Fault::Pause { client, for_ } => {
                let client = &mut self.clients[client];
                client.paused_until = client.paused_until.max(now.after(for_));
            }
            Fault::Block { client, for_ } => {
                let client = &mut self.clients[client];
                client.blocked_until = client.blocked_until.max(now.after(for_));
            }
            Fault::Lie { key, server } => self.lie(&actor::key(key), server, now),
            Fault::Forge { key, server } => self.forge(&actor::key(key), server, now),
            Fault::Poison { key, server } => self.servers[server].poison(&actor::key(key)),
            // A process that has not started yet cannot crash.
            Fault::Crash { client } if !self.has_started(client) => {}
            Fault::Crash { client } => {
                self.crash(client, now);
                return Some(Step::Crash { client });
            }
            Fault::Theft { key, first, servers, overwritten_for } => {
                self.steal(&actor::key(key), first, servers, overwritten_for, now);
            }
            Fault::Step { server, by } => self.step(server, by, now),
        }
        None
    }

    /// Cuts the connection if it carries a targeted command.
    pub(super) fn aim(&mut self, link: usize, verb: Verb, now: Instant) {
        if self.targets.is_some_and(|is_target| is_target(verb)) && self.random.u8(0..4) == 0 {
            let at = self.later(now, link);
            self.agenda.add(at, Event::Fault(Fault::Cut { link }));
        }
    }

    /// Describes a fault in the trace.
    fn trace_fault(&self, fault: Fault) {
        self.trace.line(|_| match fault {
            Fault::Cut { link } => format!("!! {} is cut", self.name(link)),
            Fault::Freeze { server, for_ } => format!("!! node {} freezes for {for_:?}", server + 1),
            Fault::Restart { server, for_, wipes } => {
                format!("!! node {} {} for {for_:?}", server + 1, if wipes { "is wiped" } else { "restarts" })
            }
            Fault::Replace { server } => format!("!! node {} gets other data", server + 1),
            Fault::Promote { server, loses } => {
                format!("!! node {} is now its replica{}", server + 1, if loses { ", which knows nothing" } else { "" })
            }
            Fault::Pause { client, for_ } => format!("!! {} pauses for {for_:?}", client_name(client)),
            Fault::Block { client, for_ } => format!("!! {} blocks for {for_:?}", client_name(client)),
            Fault::Crash { client } => format!("!! {} crashes", client_name(client)),
            Fault::Lie { key, server } => format!("!! {} is said to be broken at node {}", actor::key(key), server + 1),
            Fault::Forge { key, server } => {
                format!("!! {} is said to be granted at node {}", actor::key(key), server + 1)
            }
            Fault::Poison { key, server } => {
                format!("!! the register of {} at node {} is poisoned", actor::key(key), server + 1)
            }
            Fault::Theft { key, first, servers, overwritten_for } => {
                let what = if overwritten_for.is_some() { "overwritten" } else { "deleted" };
                format!("!! {} is {what} at {servers} nodes from {}", actor::key(key), first + 1)
            }
            Fault::Step { server, by } => format!("!! the clock of node {} goes ahead by {by:?}", server + 1),
        });
    }

    /// Replaces the data of the server, which reports this on its connections. Its earlier answers stay valid.
    fn replace(&mut self, server: usize, now: Instant) {
        self.servers[server].wipe(now);
        self.servers[server].replace();
        self.note_wipe(server);
        for wire in 0..self.wires.len() {
            if self.links[self.wires[wire].link].server == server && self.wires[wire].cut.is_none() {
                self.reply(wire, Replied::Replaced, now);
            }
        }
    }

    /// Breaks the connection. Some requests under way survive and arrive within `late`.
    pub(super) fn cut(&mut self, link: usize, now: Instant, late: Duration) {
        let Connection::Up(wire) = self.links[link].state else { return };
        if self.wires[wire].cut.is_some() {
            return;
        }
        let survivors = self.random.usize(0..=self.wires[wire].under_way.len());
        self.wires[wire].cut(survivors, now.after(late));
        // Either side may notice late. Until then, messages of the client are lost, and the server counts a dead
        // subscriber.
        let (client, server) =
            if self.random.bool() { (0, 0) } else { (self.random.u64(0..200), self.random.u64(0..500)) };
        self.agenda.add(now.after(Duration::from_millis(client)), Event::Broken { wire });
        self.agenda.add(now.after(Duration::from_millis(server)), Event::Forgotten { wire });
    }

    /// Cuts all connections whose client and server meet `is_meant`.
    fn cut_all(&mut self, now: Instant, late: Duration, is_meant: impl Fn(usize, usize) -> bool) {
        for link in 0..self.links.len() {
            if is_meant(self.links[link].client, self.links[link].server) {
                self.cut(link, now, late);
            }
        }
    }

    /// Restarts a server, which is unreachable until `until`.
    fn restart(&mut self, server: usize, until: Instant, wipes: bool, now: Instant) {
        // Requests that survive the cut do not reach the server.
        self.cut_all(now, Duration::ZERO, |_, other| other == server);
        for (number, wire) in self.wires.iter_mut().enumerate() {
            if self.links[wire.link].server == server {
                wire.lose_all();
                self.servers[server].forget(number);
            }
        }
        let restarted = &mut self.servers[server];
        restarted.restart(until);
        restarted.frozen_until = now;
        if wipes {
            restarted.wipe(now);
            self.note_wipe(server);
        }
    }

    /// Returns `true` if every live manager has connected to the server.
    fn is_known(&self, server: usize) -> bool {
        let is_strange =
            |link: &Link| link.server == server && link.epoch == 0 && !self.clients[link.client].is_crashed;
        !self.links.iter().any(is_strange)
    }

    /// Returns `true` if the process has connected to any server.
    fn has_started(&self, client: usize) -> bool {
        self.links.iter().any(|link| link.client == client && link.epoch > 0)
    }

    /// Ends a process without a release. Commands under way may still arrive.
    fn crash(&mut self, client: usize, now: Instant) {
        let late = Duration::from_millis(self.random.u64(0..200));
        self.cut_all(now, late, |other, _| other == client);
        self.clients[client].is_crashed = true;
    }
}
