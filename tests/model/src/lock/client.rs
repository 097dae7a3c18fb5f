//! Rules of a client, from its first command to its release.

use super::message::{Command, Reply};
use super::scenario::DETACHED;
use super::state::{Link, Phase};
use super::world::World;
use crate::fifo::Fifo;
use crate::rule::Rule;

/// Number of commands that may be in transit on one connection. A `RELEASE` always has room behind them.
const MOST_COMMANDS: u32 = 3;

impl World<'_> {
    /// Delivers the oldest reply or push to the client.
    pub(crate) fn deliver(&mut self, token: usize, node: usize) {
        let Some(reply) = Reply::from_code(self.link(token, node).replies.first()) else { return };
        // Read before the reply is removed, because it may be the answer to the `YIELD` itself.
        let is_void = self.link(token, node).has_yield_out() && self.keeps(Rule::YieldVoids);
        self.link_mut(token, node).replies.pop();
        self.note(token, node, reply, is_void);
        if self.scenario.free.is_none() {
            self.react(token, node, reply);
        }
    }

    /// Records the facts of a reply.
    fn note(&mut self, token: usize, node: usize, reply: Reply, is_void: bool) {
        let claim_is_lease = !self.keeps(Rule::ClaimIsNoLease);
        let (needs_time, yield_voids) = (self.keeps(Rule::ProofNeedsATime), self.keeps(Rule::YieldVoidsProof));
        let is_free = self.scenario.free.is_some();
        let link = self.link_mut(token, node);
        match reply {
            Reply::Lease | Reply::LeaseSmaller if !is_void => {
                (link.vote, link.claim) = (!is_free, false);
                link.lease |= !link.tainted;
            }
            Reply::LeaseOver | Reply::LeaseSmallerOver if !is_void => (link.vote, link.claim) = (!is_free, false),
            Reply::Kept => link.vote = !is_free,
            Reply::Granted | Reply::Proven | Reply::ProvenOver => {
                // If the rule is off, a proof counts from its arrival, without regard to its times.
                let is_proven = reply == Reply::Proven || reply == Reply::ProvenOver && !needs_time;
                let counts = is_proven && !link.tainted && !(link.has_yield_out() && yield_voids);
                link.vote = !is_free;
                link.claim |= counts && !is_free;
                link.lease |= counts || claim_is_lease && reply == Reply::Granted;
            }
            Reply::No | Reply::Yielded => (link.vote, link.lease, link.claim) = (false, false, false),
            Reply::Lease
            | Reply::LeaseSmaller
            | Reply::LeaseOver
            | Reply::LeaseSmallerOver
            | Reply::Contended
            | Reply::Wanted(_) => {}
        }
    }

    fn react(&mut self, token: usize, node: usize, reply: Reply) {
        match self.phase(token) {
            Phase::Fast => self.after_fast(token),
            Phase::Wait => self.after_event(token, node, reply),
            Phase::Hold if !self.is_valid(token) => self.leave(token),
            // A claim that arrives late.
            Phase::Hold if reply.is_claim() => self.confirm(token, node),
            _ => {}
        }
    }

    fn after_fast(&mut self, token: usize) {
        if self.is_valid(token) {
            self.state.phases[token] = Phase::Hold;
            return;
        }
        let is_open = |link: &Link| link.unanswered() > 0;
        let open = self.links(token).filter(is_open).count();
        let votes = self.links(token).filter(|link| link.vote && !is_open(link)).count();
        if open == 0 || votes + open < self.scenario.quorum() {
            // An adopter that was refused does not wait.
            if self.scenario.adopts(token) { self.leave(token) } else { self.wait(token) }
        }
    }

    /// Sends `command` to all nodes, without a place in the queues.
    pub(crate) fn try_at_once(&mut self, token: usize, command: Command) {
        self.state.phases[token] = Phase::Fast;
        self.expect_answers(token);
        (0..self.scenario.nodes).for_each(|node| self.send(token, node, command));
    }

    /// Sets up a detached lock: token 0 owns every node, a renewal is in transit, and its client does nothing any more.
    pub(crate) fn detach(&mut self) {
        self.state.phases[DETACHED] = Phase::Crashed;
        for node in 0..self.scenario.nodes {
            self.node_mut(node).owner = Some(DETACHED as u8);
            self.send(DETACHED, node, Command::Extend);
        }
    }

    /// Enters the queues of all nodes.
    pub(crate) fn wait(&mut self, token: usize) {
        if self.phase(token) != Phase::Fast {
            self.expect_answers(token);
        }
        self.state.phases[token] = Phase::Wait;
        (0..self.scenario.nodes).for_each(|node| self.send(token, node, Command::Acquire));
    }

    fn after_event(&mut self, token: usize, node: usize, reply: Reply) {
        let yields = match reply {
            Reply::LeaseSmaller | Reply::LeaseSmallerOver | Reply::Contended => Some(Command::Yield),
            Reply::Wanted(by) if self.keeps(Rule::WaitersYieldToTheHolder) => Some(Command::YieldTo(by)),
            _ => None,
        };
        if self.is_valid(token) {
            self.state.phases[token] = Phase::Hold;
            // The extensions of the claims are still sent.
            (0..self.scenario.nodes).for_each(|node| self.confirm_claim(token, node));
        } else if self.votes(token) >= self.scenario.quorum() {
            (0..self.scenario.nodes).for_each(|node| self.confirm(token, node));
        } else if let Some(command) = yields.filter(|_| self.may_yield(token, node)) {
            self.send_yield(token, node, command);
        }
    }

    /// Sends a holder's request to a node that does not count: an extension if there is a vote, or a request for the vote.
    pub(crate) fn ask_as_holder(&mut self, token: usize, node: usize) {
        let link = self.link(token, node);
        if link.vote || self.scenario.adopts(token) {
            self.send(token, node, self.scenario.extension(token));
        } else if self.may_win_back(token, node) {
            self.send(token, node, Command::WinBack);
        }
    }

    /// Returns `true` if a holder may ask for a missing vote.
    pub(crate) fn may_win_back(&self, token: usize, node: usize) -> bool {
        let link = self.link(token, node);
        !link.vote && !link.tainted && self.keeps(Rule::VotesAreWonBack)
    }

    /// Extends a vote to a lease, unless an answer is outstanding that may do so.
    fn confirm(&mut self, token: usize, node: usize) {
        let link = self.link(token, node);
        let is_claim = link.vote && (!link.lease || link.claim) && !link.tainted && !link.has_yield_out();
        if is_claim && link.unanswered() == 0 {
            self.send(token, node, self.scenario.extension(token));
        }
    }

    fn confirm_claim(&mut self, token: usize, node: usize) {
        if self.link(token, node).claim {
            self.confirm(token, node);
        }
    }

    fn may_yield(&self, token: usize, node: usize) -> bool {
        let link = self.link(token, node);
        let waits_for_others = !self.keeps(Rule::YieldAtOnce) && self.links(token).any(|other| other.unanswered() > 0);
        link.vote && link.unanswered() < MOST_COMMANDS && !waits_for_others
    }

    pub(crate) fn send_yield(&mut self, token: usize, node: usize, command: Command) {
        let voids = self.keeps(Rule::YieldVoids);
        let link = self.link_mut(token, node);
        (link.vote, link.claim) = (false, false);
        link.lease &= !voids;
        self.send(token, node, command);
    }

    /// Handles a cut at once, except for the part that needs the new connection.
    pub(crate) fn after_cut(&mut self, token: usize) {
        if self.scenario.free.is_some() {
            return;
        }
        let untainted = self.links(token).filter(|link| !link.tainted).count();
        match self.phase(token) {
            Phase::Fast | Phase::Wait | Phase::Hold if untainted < self.scenario.quorum() => {
                self.leave(token);
                self.go_on_with_successor(token);
            }
            Phase::Hold if !self.is_valid(token) => self.leave(token),
            Phase::Fast => self.after_fast(token),
            _ => {}
        }
    }

    fn go_on_with_successor(&mut self, token: usize) {
        let successor = token + 1;
        if self.scenario.successor && successor == self.scenario.tokens && self.phase(successor) == Phase::Unborn {
            self.wait(successor);
        }
    }

    /// Leaves for any reason: sends `RELEASE` behind all earlier commands, on every connection.
    pub(crate) fn leave(&mut self, token: usize) {
        self.state.phases[token] = Phase::Left;
        self.forget(token);
        for node in 0..self.scenario.nodes {
            let keeps = self.keeps(Rule::ReleasesAreSeenThrough);
            let link = self.link_mut(token, node);
            let has_nothing = std::mem::take(&mut link.has_only_failed) && link.unanswered() == 0;
            if (!link.down || keeps) && !has_nothing {
                link.commands.push(Command::Release.code());
            }
        }
    }

    /// Clears the client's knowledge, because replies in transit no longer have an effect.
    pub(crate) fn forget(&mut self, token: usize) {
        for column in &mut self.state.columns {
            let link = &mut column.links[token];
            (link.vote, link.lease, link.claim, link.tainted) = (false, false, false, false);
            link.replies = Fifo::default();
        }
    }

    /// Expires the key of `token` at `node`. Every lease of the key ends with it, because leases end before their key.
    pub(crate) fn end_lease(&mut self, token: usize, node: usize) {
        let keeps = self.keeps(Rule::ValidityFromTheSend);
        let link = self.link_mut(token, node);
        (link.lease, link.claim) = (false, false);
        if keeps {
            link.replies = link.replies.map(|code| Reply::from_code(code).map_or(code, |reply| reply.expired().code()));
        }
        if self.phase(token) == Phase::Hold && !self.is_valid(token) {
            self.leave(token);
        }
    }
}
