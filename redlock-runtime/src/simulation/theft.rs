//! Keys that vanish under their holders: another program takes them, or a server's clock is set forward.
//!
//! If too few servers remain to exclude other calls, the loss cannot be prevented. Such tokens are marked as robbed.

use super::actor::key;
use super::link::Link;
use super::network::World;
use super::server::Server;
use super::tree::NAMES;
use crate::lock::LockKey;
use crate::lock::OwnerToken;
use crate::lock::owner_token::ManagerId;
use crate::protocol::command::{Command, Notice, Subject, Verb, Wakeup};
use crate::time::clock::Instant;
use crate::time::token_clock::TokenTime;
use std::sync::Arc;
use std::time::Duration;

/// Theft that lets another call acquire the lock of a holder.
pub(super) struct Theft {
    pub(super) at: Instant,
    /// Names of the stolen keys.
    names: Vec<Arc<str>>,
    /// Servers that were robbed, and the time until which an unaware holder counts on each.
    counted_on: Vec<(usize, Instant)>,
}

impl World {
    /// Deletes or overwrites `key` at `servers` servers in a row, like another program.
    pub(super) fn steal(
        &mut self,
        key: &LockKey,
        first: usize,
        servers: usize,
        overwritten_for: Option<Duration>,
        now: Instant,
    ) {
        let all = self.servers.len();
        let hit: Vec<_> = (first..first + servers).map(|server| server % all).collect();
        self.mark_robbed(key, &hit, now);
        self.note_theft(key, &hit, now);
        let thief = OwnerToken::new(ManagerId::numbered(u128::MAX), TokenTime::new(0, 1));
        for server in hit {
            let server = &mut self.servers[server];
            match overwritten_for {
                Some(ttl) => server.overwrite(key.name(), thief, ttl, now),
                None => server.clear(key.name()),
            }
        }
    }

    /// Sets the clock of a server forward. Leases there end earlier, as if they were stolen.
    pub(super) fn step(&mut self, server: usize, by: Duration, now: Instant) {
        for index in 0..NAMES.len() {
            self.mark_robbed(&key(index), &[server], now);
            self.mark_broken_as_robbed(&key(index), &[server], now);
        }
        self.note_step(server, by);
        self.servers[server].step(by);
    }

    /// Marks the receiver of a provisional grant as robbed if a clock step is hidden by the delay of the message.
    ///
    /// The message was under way for longer than the step of the server's clock. The receiver therefore counts on the
    /// grant for too long, until its extension is answered.
    pub(super) fn note_hidden_step(&mut self, link: usize, wakeup: &Wakeup, sent: Instant, now: Instant) {
        let Notice::Proven(claim) = wakeup.notice else { return };
        let Link { server, ref server_facts, .. } = self.links[link];
        let is_believable = claim.from <= server_facts.now();
        let believed = server_facts.now().since(claim.from);
        if is_believable && self.servers[server].has_stepped() && believed < now.since(sent) {
            let token = wakeup.subject.token;
            self.trace.line(|trace| format!("{} is robbed by a step that nobody has seen", trace.name(token)));
            self.rob(&wakeup.subject.key, token, Vec::new(), now);
        }
    }

    /// Marks tokens as robbed that hold `key` at the servers in `hit`, if too few other servers hold it for as long.
    ///
    /// A holder counts on the promises of the former servers until they end.
    fn mark_robbed(&mut self, key: &LockKey, hit: &[usize], now: Instant) {
        let holders = |server: &usize| self.servers[*server].holders(key.name(), now);
        for token in hit.iter().flat_map(holders).collect::<Vec<_>>() {
            let left = |server: usize| self.servers[server].lease_left(key.name(), token, now);
            let counted_on = hit.iter().filter_map(|server| left(*server)).max();
            let others = (0..self.servers.len()).filter(|other| !hit.contains(other));
            if others.filter(|other| left(*other) >= counted_on).count() < self.enough_to_exclude() {
                self.trace.line(|trace| format!("{} is robbed", trace.name(token)));
                let until = |server: &usize| left(*server).map(|left| (*server, now.after(left)));
                let counted_on = hit.iter().filter_map(until).collect();
                self.rob(key, token, counted_on, now);
            } else {
                self.weakened.insert(token);
            }
        }
    }

    /// Marks a token as robbed if it yields a server that it could spare only with all its other servers. One of these
    /// was taken away while the yield was under way.
    pub(super) fn note_yield(&mut self, command: &Command, now: Instant) {
        let Subject { token, .. } = &*command.subject;
        let is_short = |world: &Self| command.subject.wanted().any(|(key, _)| !world.excludes(key, *token, now));
        if matches!(command.verb, Verb::Yield { .. }) && self.weakened.contains(token) && is_short(self) {
            self.trace.line(|trace| format!("{} is robbed, behind its yield", trace.name(*token)));
            command.subject.wanted().for_each(|(key, _)| self.rob(key, *token, Vec::new(), now));
        }
    }

    /// Marks `token` as robbed of `key`.
    pub(super) fn rob(&mut self, key: &LockKey, token: OwnerToken, counted_on: Vec<(usize, Instant)>, now: Instant) {
        let new = || Theft { at: now, names: Vec::new(), counted_on: Vec::new() };
        let robbery = self.robbed.entry(token).or_insert_with(new);
        robbery.at = now;
        robbery.names.push(key.name().into());
        robbery.counted_on.extend(counted_on);
        self.robbed_since_asked.entry(token).and_modify(|is_robbed| *is_robbed = true);
    }

    /// Records that `token` has won `key` back.
    pub(super) fn forget_robbery(&mut self, key: &LockKey, token: OwnerToken) {
        if let Some(robbery) = self.robbed.get_mut(&token) {
            robbery.names.retain(|name| **name != *key.name());
            if robbery.names.is_empty() {
                self.robbed.remove(&token);
            }
        }
    }

    /// Returns `true` if `token` has won back its earlier losses.
    ///
    /// This is so if it is held at enough servers for as long as it counts on them, including the servers where it was
    /// robbed. The token had `key` at server `at` until now.
    pub(super) fn was_whole(
        &self,
        key: &LockKey,
        token: OwnerToken,
        (at, until): (usize, Instant),
        now: Instant,
    ) -> bool {
        let left = |server: usize| self.servers[server].lease_left(key.name(), token, now);
        let stands_until = |server| if server == at { Some(until) } else { left(server).map(|left| now.after(left)) };
        let robbed: &[_] = self.robbed.get(&token).map_or(&[], |robbery| &robbery.counted_on);
        let counted_on = |server| {
            let robbed = robbed.iter().filter(|(other, _)| *other == server).map(|(_, until)| *until);
            stands_until(server).into_iter().chain(robbed).max()
        };
        let mut all: Vec<_> = (0..self.servers.len()).filter_map(counted_on).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        let Some(end) = all.get(self.quorum.needed - 1) else { return false };
        (0..self.servers.len()).filter(|server| stands_until(*server) >= Some(*end)).count() >= self.enough_to_exclude()
    }

    /// Returns the number of servers at which a holder excludes all other calls.
    pub(super) fn enough_to_exclude(&self) -> usize {
        self.servers.len() + 1 - self.quorum.needed
    }

    /// Returns `true` if no other call can acquire `key` while the entries of `token` remain.
    pub(super) fn excludes(&self, key: &LockKey, token: OwnerToken, now: Instant) -> bool {
        self.excludes_with(key, token, 0, now)
    }

    /// Returns `true` if `excludes` would hold with `more` additional servers.
    pub(super) fn excludes_with(&self, key: &LockKey, token: OwnerToken, more: usize, now: Instant) -> bool {
        let holds = |server: &&Server| server.has(key.name(), token, now);
        self.servers.iter().filter(holds).count() + more >= self.enough_to_exclude()
    }
}
