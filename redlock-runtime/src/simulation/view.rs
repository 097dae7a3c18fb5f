//! View of the observer, which sees all servers at once.

use super::link::{Connection, Link};
use super::network::{Network, World};
use super::server::Server;
use crate::lock::LockKey;
use crate::lock::OwnerToken;
use crate::protocol::command::{Command, Reply, Subject, Verb};
use crate::time::clock::Instant;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

impl Network {
    /// Returns the time for which the tasks of a process rest.
    pub(super) fn paused_for(&self, client: usize) -> Duration {
        self.world().clients[client].tasks_rest_until().since(self.now())
    }

    /// Returns the time until which the tasks of a process rest.
    pub(super) fn paused_until(&self, client: usize) -> Instant {
        self.world().clients[client].tasks_rest_until()
    }

    pub(super) fn is_crashed(&self, client: usize) -> bool {
        self.world().clients[client].is_crashed
    }

    /// Returns `true` if enough servers could serve `clients`, which wait for all `keys`, so that one of them should
    /// acquire them.
    ///
    /// A server grants either all keys of a call or none, so only a server at which all of them are free counts. `kept`
    /// are the tokens that are in use. If the `bool` of a key is set, its readers exclude none of the clients.
    pub(super) fn can_serve(&self, keys: &[(LockKey, bool)], clients: &[usize], kept: &[OwnerToken]) -> bool {
        let (world, now) = (self.world(), self.now());
        let serves = |server: &usize| {
            let is_free = |(key, share): &(LockKey, bool)| world.is_free_soon(*server, key, (kept, *share), now);
            world.can_be_asked_by(*server, clients, now) && keys.iter().all(is_free)
        };
        (0..world.servers.len()).filter(serves).count() >= world.quorum.needed
    }

    /// Returns the tokens that have shares of `key` at any of the servers, and whose processes are well.
    pub(super) fn live_shares(&self, key: &LockKey) -> HashSet<OwnerToken> {
        let (world, now) = (self.world(), self.now());
        let shares = world.servers.iter().flat_map(|server| server.readers(key.name(), now));
        let is_well = |token: &OwnerToken| world.client_of(*token).is_some_and(|at| world.clients[at].is_well(now));
        shares.filter(is_well).collect()
    }

    /// Returns `true` if fewer than `room` tokens keep a share of `key` at any of the servers.
    ///
    /// Shares that will soon be released are not counted. `kept` are the tokens that are in use. Tokens that have
    /// `left` keep no call out for long.
    pub(super) fn has_room(
        &self,
        key: &LockKey,
        kept: &[OwnerToken],
        left: impl Fn(OwnerToken) -> bool,
        room: u32,
    ) -> bool {
        let (world, now) = (self.world(), self.now());
        let of = |(index, server): (usize, &Server)| {
            let readers = server.readers(key.name(), now).into_iter();
            let stays = |reader: &OwnerToken| !left(*reader) && !world.is_free_to_go(index, *reader, kept, now);
            readers.filter(stays).collect::<Vec<_>>()
        };
        let stay: HashSet<_> = world.servers.iter().enumerate().flat_map(of).collect();
        // A live owner of the admission lock soon enters or leaves. If its process is gone or paused, only time ends
        // the lock.
        let admission = key.admission();
        let is_in_the_way = |(index, server): (usize, &Server)| {
            let owner = server.owner(admission.name(), now);
            owner.is_some_and(|owner| !world.is_free_to_go(index, owner, &[], now))
        };
        stay.len() < room as usize && !world.servers.iter().enumerate().any(is_in_the_way)
    }

    /// Returns `true` if enough servers could serve all `clients`, which want these keys of a tree.
    ///
    /// The `harmless` tokens have entries there, but exclude none of the clients.
    pub(super) fn can_serve_all(
        &self,
        keys: &[LockKey],
        clients: &[usize],
        kept: &[OwnerToken],
        harmless: &[OwnerToken],
    ) -> bool {
        let (world, now) = (self.world(), self.now());
        let serves = |server: &usize| {
            let is_out_of_the_way = |token| harmless.contains(&token) || world.is_free_to_go(*server, token, kept, now);
            let mut holders = keys.iter().flat_map(|key| world.servers[*server].holders(key.name(), now));
            world.can_be_asked_by(*server, clients, now) && holders.all(is_out_of_the_way)
        };
        (0..world.servers.len()).filter(serves).count() >= world.quorum.needed
    }

    /// Returns the time at which `token` lost `key` at enough servers for another call to acquire it. Returns `None` if
    /// it has won the key back.
    pub(super) fn robbed_at(&self, key: &LockKey, token: OwnerToken) -> Option<Instant> {
        let (world, now) = (self.world(), self.now());
        let robbed_at = world.robbed.get(&token)?.at;
        // A holder does not count a server that abstains, and another one may count the lease that it had there before.
        let counts = |server: &&Server| server.has(key.name(), token, now) && !server.is_forgetful(now);
        let places = world.servers.iter().filter(counts).count() + world.placeholders(key, token, now);
        (places < world.enough_to_exclude()).then_some(robbed_at)
    }

    /// Returns `true` if `token` was robbed after it last requested new leases, so that the answers could not show it.
    pub(super) fn was_robbed_since_asked(&self, token: OwnerToken) -> bool {
        self.world().robbed_since_asked.get(&token).is_some_and(|is_robbed| *is_robbed)
    }

    /// Returns the time at which a server last handed a lock to `token`.
    pub(super) fn handed_at(&self, token: OwnerToken) -> Option<Instant> {
        self.world().handed_at.get(&token).copied()
    }

    /// Returns `true` if `token` of `client` has `key` at a quorum of untroubled servers, or of servers that it is
    /// connected to.
    pub(super) fn is_kept(&self, key: &LockKey, token: OwnerToken, client: usize) -> bool {
        let (world, now) = (self.world(), self.now());
        let troubled = if world.is_minority { (world.servers.len() - 1) / 2 } else { 0 };
        let is_owned = |server: &usize| world.servers[*server].has(key.name(), token, now);
        let can_be_asked = |server: &usize| world.is_minority || world.has_wire(client, *server);
        let owners = (troubled..world.servers.len()).filter(is_owned).filter(can_be_asked);
        owners.count() >= world.quorum.needed
    }

    /// Returns `true` if no other call can acquire `key` while the entries of `token` remain.
    pub(super) fn excludes(&self, key: &LockKey, token: OwnerToken) -> bool {
        self.world().excludes(key, token, self.now())
    }

    /// Forgets a theft from `token` before `at`: it does not excuse later behaviour.
    pub(super) fn was_whole(&self, token: OwnerToken, at: Instant) {
        let mut world = self.world();
        if world.robbed.get(&token).is_some_and(|robbery| robbery.at < at) {
            world.robbed.remove(&token);
        }
    }

    /// Returns `true` if the process runs now.
    pub(super) fn is_well(&self, client: usize) -> bool {
        self.world().clients[client].is_well(self.now())
    }

    /// Returns a smaller token that has waited in the queues of a majority for longer than `patient`.
    ///
    /// If `excluding` is set, the smaller token must also exclude `token`.
    pub(super) fn queued_before(
        &self,
        key: &LockKey,
        token: OwnerToken,
        patient: Duration,
        excluding: bool,
    ) -> Option<OwnerToken> {
        let (world, now) = (self.world(), self.now());
        let queued = |server: &Server| server.queued_since(key.name(), now);
        let all: Vec<_> =
            world.servers.iter().flat_map(queued).filter(|(_, since)| patient < now.since(*since)).collect();
        let is_everywhere =
            |earlier: OwnerToken| all.iter().filter(|(other, _)| *other == earlier).count() >= world.quorum.needed;
        let counts = |earlier: OwnerToken| !excluding || world.wishes.exclude(earlier, token);
        let earlier = all.iter().map(|(earlier, _)| *earlier);
        earlier.into_iter().find(|earlier| *earlier < token && counts(*earlier) && is_everywhere(*earlier))
    }

    /// Returns all tokens of live managers under `key`, with the number of the server. The last value is `true` if the
    /// token arrived by a connection that had ended.
    pub(super) fn leftovers(&self, key: &LockKey) -> Vec<(usize, OwnerToken, bool)> {
        let all = self.remains(key).into_iter();
        let world = self.world();
        let is_alive = |token| world.client_of(token).is_some_and(|client| !world.clients[client].is_crashed);
        let alive = all.filter(|(_, token)| is_alive(*token));
        alive.map(|(server, token)| (server, token, world.servers[server].has_late_token(token))).collect()
    }

    /// Returns the longest time for which expected tokens still keep `key`: detached tokens, and tokens of crashed
    /// processes.
    pub(super) fn longest_expected_lease(&self, key: &LockKey) -> Duration {
        let all = self.remains(key).into_iter();
        let meant = all.filter(|(server, token)| !self.world().servers[*server].has_late_token(*token));
        meant.filter_map(|(server, token)| self.lease_left(server, key, token)).max().unwrap_or_default()
    }

    /// Returns the remaining lease of `token` for `key` at one server.
    pub(super) fn lease_left(&self, server: usize, key: &LockKey, token: OwnerToken) -> Option<Duration> {
        self.world().servers[server].lease_left(key.name(), token, self.now())
    }

    /// Returns the manager that has created `token`.
    pub(super) fn client_of(&self, token: OwnerToken) -> Option<usize> {
        self.world().client_of(token)
    }

    /// Returns all tokens under `key`, with the number of the server.
    pub(super) fn remains(&self, key: &LockKey) -> Vec<(usize, OwnerToken)> {
        let (world, now) = (self.world(), self.now());
        let tokens = |(index, server): (usize, &Server)| {
            server.tokens(key.name(), now).into_iter().map(move |token| (index, token))
        };
        world.servers.iter().enumerate().flat_map(tokens).collect()
    }

    /// Takes `key` like a program that asks every server once. Returns `true` if a majority grants it.
    pub(super) fn take(&self, key: &LockKey, token: OwnerToken, ttl: Duration) -> bool {
        let (mut world, now) = (self.world(), self.now());
        let subject = Arc::new(Subject::new(key.clone(), token));
        let command = Command { verb: Verb::SetNx { ttl }, fence: None, subject };
        let well = world.servers.iter_mut().filter(|server| server.is_well(now));
        let votes = well
            .filter_map(|server| matches!(server.execute(now, &command).reply, Reply::Granted { .. }).then_some(()));
        let votes = votes.count();
        self.trace.line(|trace| format!("a foreigner asks for {key} as {} and gets {votes}", trace.name(token)));
        votes >= world.quorum.needed
    }

    /// Deletes `key` of `token` at all servers that run, like a foreign program.
    pub(super) fn delete(&self, key: &LockKey, token: OwnerToken) {
        let (mut world, now) = (self.world(), self.now());
        self.trace.line(|trace| format!("a foreigner deletes {key} of {}", trace.name(token)));
        world.servers.iter_mut().filter(|server| server.is_well(now)).for_each(|server| {
            server.delete(key.name(), token, now);
        });
    }
}

impl World {
    fn client_of(&self, token: OwnerToken) -> Option<usize> {
        self.clients.iter().position(|client| client.manager == token.manager())
    }

    /// Returns `true` if nothing at the server will keep `key` from another call for long.
    fn is_free_soon(&self, server: usize, key: &LockKey, (kept, share): (&[OwnerToken], bool), now: Instant) -> bool {
        let is_free_to_go = |owner: OwnerToken| self.is_free_to_go(server, owner, kept, now);
        self.servers[server].owner(key.name(), now).is_none_or(is_free_to_go)
            && (share || self.servers[server].readers(key.name(), now).into_iter().all(is_free_to_go))
    }

    /// Returns `true` if `owner` will soon release what it has at the server.
    fn is_free_to_go(&self, server: usize, owner: OwnerToken, kept: &[OwnerToken], now: Instant) -> bool {
        // For another program, or a process that is gone, only time helps. A token in use is released later.
        let client = self.client_of(owner).filter(|client| self.clients[*client].is_well(now));
        client.is_some_and(|client| !kept.contains(&owner) && self.is_connected(client, server))
    }

    /// Returns `true` if the server runs and all clients are connected to it.
    fn can_be_asked_by(&self, server: usize, clients: &[usize], now: Instant) -> bool {
        self.servers[server].is_well(now) && clients.iter().all(|client| self.is_connected(*client, server))
    }

    /// Returns `true` if the client has a live connection to the server.
    fn has_wire(&self, client: usize, server: usize) -> bool {
        let mut links = self.links.iter().filter(|link| link.client == client && link.server == server);
        links.all(|link| matches!(link.state, Connection::Up(wire) if self.wires[wire].cut.is_none()))
    }

    /// Returns `true` if the client has a live connection, over which the server does not abstain.
    fn is_connected(&self, client: usize, server: usize) -> bool {
        let mut links = self.links.iter().filter(|link| link.client == client && link.server == server);
        let counts = |link: &Link| {
            self.is_cold || link.server_facts.abstains_for(link.abstention, link.server_facts.now()).is_none()
        };
        links.all(|link| counts(link) && matches!(link.state, Connection::Up(wire) if self.wires[wire].cut.is_none()))
    }
}
