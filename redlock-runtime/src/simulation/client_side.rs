//! Events at the clients: arriving answers and wake-ups, and connections that come and go.

use super::agenda::{Entry, Event, Replied, Request};
use super::link::{Asked, Connection};
use super::network::{Step, World};
use super::wire::Wire;
use crate::error::{ErrorReply, NodeError};
use crate::node::abstention::worth;
use crate::protocol::command::Wakeup;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::time::Duration;

impl World {
    /// Handles a message that arrives at a client.
    pub(super) fn deliver_to_client(&mut self, entry: Entry, wire: usize, now: Instant) -> Option<Step> {
        let index = self.wires[wire].link;
        let client = &self.clients[self.links[index].client];
        if self.wires[wire].cut.is_some() || client.is_crashed {
            return None;
        }
        if now < client.paused_until {
            let at = client.paused_until;
            self.agenda.postpone(entry, at);
            return None;
        }
        match entry.event {
            Event::Push { wakeup: Wakeup { subject, notice }, sent, .. } => {
                let link = &self.links[index];
                let notice = if link.has_pushes { link.server_facts.proven(notice) } else { notice };
                let wakeup = Wakeup { subject, notice };
                self.trace_push(index, &wakeup);
                self.note_hidden_step(index, &wakeup, sent, now);
                self.note_told(&wakeup, now);
                Some(Step::Deliver(self.links[index].environment.deliver.clone(), wakeup))
            }
            Event::Reply { reply: Replied::Replaced, .. } => {
                self.trace_reply(index, &Replied::Replaced);
                self.cut(index, now, Duration::ZERO);
                None
            }
            Event::Reply { reply, .. } => {
                self.replied(index, &reply);
                None
            }
            _ => None,
        }
    }

    /// Handles an answer: it completes the oldest pending command of the link.
    fn replied(&mut self, index: usize, reply: &Replied) {
        self.trace_reply(index, reply);
        let link = &mut self.links[index];
        match reply {
            Replied::Replaced => {}
            Replied::Subscribed => {
                link.is_listening = true;
                link.environment.changed.notify_waiters();
            }
            Replied::Raised => {
                let Some(Asked { recipient, .. }) = link.unanswered.pop_front() else { return };
                recipient.answer(Err(NodeError::Refused(ErrorReply::raised("OOM in the middle of a script"))));
            }
            Replied::Command { reply, seen, time } => {
                if let Some(seen) = seen.filter(|_| self.rules.apply(Rule::TokensFollowTheLatest)) {
                    link.environment.token_clock.observe(seen);
                }
                let Some(Asked { recipient, sent, proposal }) = link.unanswered.pop_front() else { return };
                // Before the answer: the reported time shows whether the answer belongs to the time after a step.
                if let Some(time) = *time {
                    link.server_facts.told(time, sent);
                }
                if let Some(proposal) = proposal {
                    link.environment.servers.on_proposal_reply(&proposal, link.server_facts.node(), reply);
                }
                let left = link.server_facts.abstains_for(link.abstention, sent);
                recipient.answer(worth(Ok(reply.clone()), left));
            }
        }
    }

    /// Handles the end of a connection at the client, and plans to reconnect.
    pub(super) fn broken(&mut self, entry: Entry, wire: usize, now: Instant) {
        let index = self.wires[wire].link;
        let client = &self.clients[self.links[index].client];
        if client.is_crashed || self.links[index].state != Connection::Up(wire) {
            return;
        }
        if now < client.paused_until {
            let at = client.paused_until;
            return self.agenda.postpone(entry, at);
        }
        self.trace.line(|_| format!("{} notices the broken connection", self.name(index)));
        self.links[index].broken();
        self.links[index].environment.changed.notify_waiters();
        let pause = Duration::from_millis(self.random.u64(1..=self.away));
        self.agenda.add(now.after(pause), Event::Connected { link: index });
    }

    /// Connects a client to its server, as soon as both are able to.
    pub(super) fn connect(&mut self, entry: Entry, index: usize, now: Instant) {
        let (link, client) = (&self.links[index], &self.clients[self.links[index].client]);
        let server = &mut self.servers[link.server];
        if client.is_crashed {
            return;
        }
        let possible = client.paused_until.max(server.frozen_until).max(server.down_until);
        if now < possible {
            let pause = Duration::from_millis(self.random.u64(0..50));
            return self.agenda.postpone(entry, possible.after(pause));
        }
        let wire = self.wires.len();
        self.wires.push(Wire::new(index, now));
        let link = &mut self.links[index];
        let identity = server.identity(link.client, link.server_facts.receipt(), now);
        let time = server.time(now);
        // The handshake reports the time and the identity of the server. The facts decide for how long it abstains.
        link.server_facts.told(time, link.server_facts.now());
        // No server has two addresses here.
        link.abstention = link.server_facts.connected(Some(identity)).unwrap_or_default();
        (link.state, link.epoch) = (Connection::Up(wire), link.epoch + 1);
        link.environment.changed.notify_waiters();
        (link.environment.connected)();
        if link.is_wanted {
            self.request(wire, Request::Subscribe, now);
        }
        self.trace.line(|_| format!("{} connected", self.name(index)));
    }
}
