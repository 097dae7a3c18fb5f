//! Sending commands to the nodes.

use super::Ownership;
use crate::client::release::Parting;
use crate::protocol::candidate::Standing;
use crate::protocol::candidate::in_flight::InFlight;
use crate::protocol::candidate::voter::NodeStanding;
use crate::protocol::command::{Command, Fence, Verb};
use crate::protocol::lease;
use crate::time::clock::Instant;
use std::sync::Arc;

impl Ownership {
    /// Sends `verb` to every node at once that takes more. `now` must be before the first send.
    pub(super) fn ask_all(&self, verb: Verb, fence: Option<Fence>, now: Instant) {
        self.ask_all_of(&mut self.standing(), verb, fence, now);
    }

    pub(super) fn ask_all_of(&self, standing: &mut Standing, verb: Verb, fence: Option<Fence>, now: Instant) {
        standing.settle(self.core.clock);
        standing.numbers.begin_round();
        for index in 0..self.core.nodes.len() {
            if standing.nodes.get(index).is_some_and(NodeStanding::is_open) {
                self.ask(standing, index, verb, fence, now);
            }
        }
    }

    pub(super) fn ask(&self, standing: &mut Standing, index: usize, verb: Verb, fence: Option<Fence>, now: Instant) {
        if let Some(node) = self.core.nodes.get(index) {
            let answer = node.ask(Command { verb, fence, subject: Arc::clone(&self.subject) }, now);
            standing.sent(index, InFlight::new(verb, now, self.terms.provable(now), answer));
        }
    }

    /// Sends whatever the nodes should be asked next.
    pub(super) fn ask_what_is_wanted(&self, standing: &mut Standing, now: Instant) -> bool {
        // What a tainted node may still hold is of no use to the token, and others wait for it.
        self.leave_where(standing, now, |node| node.is_tainted);
        let (mut has_asked, fence) = (false, standing.numbers.fence());
        standing.numbers.begin_round();
        for index in 0..self.core.nodes.len() {
            let is_ready = || self.core.nodes.get(index).is_some_and(|node| node.is_ready_to_queue(self.key()));
            if let Some(verb) = standing.wants(index, now)
                && (is_ready() || !standing.postpones(index, verb, now))
            {
                self.ask(standing, index, verb, fence, now);
                has_asked = true;
            }
        }
        has_asked
    }

    /// Gives back what the nodes may have of the token that are `unwanted`.
    pub(super) fn leave_where(&self, standing: &mut Standing, now: Instant, unwanted: impl Fn(&NodeStanding) -> bool) {
        let matters_until = now.after(self.ttl().max(lease::QUEUE_EXPIRY));
        for (index, node) in standing.nodes.iter_mut().enumerate() {
            if unwanted(node) && node.may_know() {
                node.forget();
                let verb = Verb::Release { claim: self.terms.claim() };
                let command = Command { verb, fence: None, subject: Arc::clone(&self.subject) };
                self.core.give_back(index, Parting { command, matters_until, keeps_until: None, expected: false });
            }
        }
    }
}
