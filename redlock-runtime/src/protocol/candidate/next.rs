//! Next commands to the nodes, and their times.
//!
//! For each node, the first matching line tells which command a waiting candidate wants to send:
//!
//! 1. *Enough votes are ours*: an extension of each vote that is a claim, or a lease that is nearly over. It confirms
//!    the votes. No other command is sent in this state, and no node is yielded. If a body can begin on the claims, they
//!    are confirmed later ([`claims`](super::claims)).
//! 2. *A token with precedence waits at our node*, because it is smaller or holds the lock elsewhere: a yield. It is
//!    sent at once and without waiting for other nodes, because all others may wait for it. A yield to a holder names
//!    that holder.
//! 3. *The time for the next question has come*: an acquisition, which asks for a place in the queue, or for the lock
//!    if it is free.
//!
//! A holder extends claims that arrived late, asks for missing votes ([`winning_back`](super::winning_back)), and never
//! yields. In other phases, no command is sent.

use super::fencing_number::Fence;
use super::in_flight::InFlight;
use super::vote::Vote;
use super::voter::Voter;
use super::winning_back::Round;
use super::{Candidate, Phase};
use crate::lock::OwnerToken;
use crate::protocol::command::Verb;
use crate::protocol::last_command::LastCommand;
use crate::protocol::rules::Rule;
use crate::protocol::timing::{LISTENING_PAUSE, POLL};
use crate::time::clock::Instant;
use std::time::Duration;

/// Command that is sent to node number `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) index: usize,
    pub(crate) verb: Verb,
    pub(crate) fence: Option<Fence>,
    /// Token that a yield names.
    pub(crate) other: Option<OwnerToken>,
}

impl Candidate {
    /// Sends a command to node number `index`.
    pub(super) fn ask(
        &mut self,
        index: usize,
        verb: Verb,
        fence: Option<Fence>,
        now: Instant,
        send: &mut impl FnMut(Outgoing),
    ) {
        let lease_end = self.counted_until(index, verb, now);
        if let Some(voter) = self.voters.get_mut(index) {
            let other = voter.hints.wanted_by().filter(|_| matches!(verb, Verb::Yield { .. }));
            if self.phase == Phase::Holding {
                voter.recheck_at = None;
            }
            voter.asked(InFlight::new(verb, now, lease_end));
            send(Outgoing { index, verb, fence, other });
        }
    }

    /// Sends a command to every node that accepts further commands, except to a late claim, which comes after the others.
    /// `now` must be before the first send.
    pub(super) fn ask_all(&mut self, verb: Verb, fence: Option<Fence>, now: Instant, send: &mut impl FnMut(Outgoing)) {
        for index in 0..self.voters.len() {
            if self.voters.get(index).is_some_and(|voter| voter.is_open() && !self.is_late_claim(voter)) {
                self.ask(index, verb, fence, now, send);
            }
        }
    }

    /// Sends the commands that are due. Returns `true` if there were any.
    ///
    /// `is_ready` returns `true` for a node whose queue can be joined: its wake-ups will arrive, or it has no
    /// connection at all.
    pub(crate) fn next_commands(
        &mut self,
        now: Instant,
        is_ready: impl Fn(usize) -> bool,
        mut send: impl FnMut(Outgoing),
    ) -> bool {
        if self.has_lost_lock(now) {
            return false;
        }
        self.count_votes(now);
        let (mut has_asked, fence) = (false, self.fencing.fence());
        for index in 0..self.voters.len() {
            if let Some(verb) = self.next_command_for(index, now)
                && (is_ready(index) || !self.postpones(index, verb, now))
            {
                let fence = match verb {
                    // A yielding token owns nothing that a number could belong to.
                    Verb::Yield { .. } => None,
                    Verb::Acquire { holds: true, .. } => self.fence_of_holder(index, verb),
                    _ => fence,
                };
                self.ask(index, verb, fence, now, &mut send);
                has_asked = true;
            }
        }
        has_asked
    }

    /// Releases the token at tainted nodes: it is useless there, and other tokens wait for it.
    pub(crate) fn leave_tainted(&mut self, now: Instant, leave: impl FnMut(usize, LastCommand)) {
        self.leave_where(now, |voter| voter.is_tainted, leave);
    }

    /// Returns the next command for node number `index`.
    #[cfg(test)]
    pub(super) fn wants(&self, index: usize, now: Instant) -> Option<Verb> {
        if self.has_lost_lock(now) { None } else { self.next_command_for(index, now) }
    }

    /// Returns `true` if the lock is lost, so that no question is worthwhile: its answer could not count.
    fn has_lost_lock(&self, now: Instant) -> bool {
        self.phase == Phase::Holding && !self.is_proven(now)
    }

    /// Returns the next command for node number `index`, if there is one.
    fn next_command_for(&self, index: usize, now: Instant) -> Option<Verb> {
        let voter = self.voters.get(index)?;
        let (ttl, claim) = (self.terms.ttl, self.terms.claim());
        match self.phase {
            Phase::Holding if voter.is_claim() && self.wants_extension(voter, now) => {
                let is_due = voter.is_due(now) || !voter.is_unconfirmed_claim();
                let waits = self.is_late_claim(voter) && self.waits_for_others(voter, now);
                self.rest(voter, now).filter(|_| is_due && !waits).map(|ttl| self.extension_verb(ttl))
            }
            Phase::Holding => self.holder_command(index, Round::None, now, now),
            Phase::Waiting if self.has_votes(now) => {
                let wants = self.wants_extension(voter, now) && !self.confirms_later(now);
                wants.then(|| self.extension_verb(ttl))
            }
            Phase::Waiting if voter.must_yield() && self.may_yield(now) => Some(Verb::Yield { claim }),
            Phase::Waiting => voter.is_request_due(now).then_some(Verb::Acquire { ttl, claim, holds: false }),
            Phase::Trying | Phase::Superseded | Phase::Ended => None,
        }
    }

    fn wants_extension(&self, voter: &Voter, now: Instant) -> bool {
        // A quorum has to accept the same ballot, so all nodes that have voted are asked together.
        let useful_from = if self.fencing.is_wanted() { self.terms.provable(now) } else { self.terms.useful_from(now) };
        voter.wants_extension(now, useful_from, self.fresh_from(), self.terms.node_timeout)
    }

    /// Returns `true` if a yield may be sent. Without the rule, it waits until every node has answered.
    fn may_yield(&self, now: Instant) -> bool {
        let has_answered = |voter: &Voter| voter.vote != Vote::Open && !voter.is_late(now, Duration::ZERO);
        self.terms.applies(Rule::YieldAtOnce) || self.voters.iter().all(has_answered)
    }

    /// Returns `true` and postpones the question if the wake-ups of node number `index` do not arrive yet.
    pub(super) fn postpones(&mut self, index: usize, verb: Verb, now: Instant) -> bool {
        let is_early =
            matches!(verb, Verb::Acquire { .. }) && self.wait.as_ref().is_some_and(|wait| wait.is_early(now));
        if let Some(voter) = self.voters.get_mut(index).filter(|_| is_early) {
            voter.schedule_recheck(now.after(LISTENING_PAUSE));
        }
        is_early
    }

    /// Returns the time of the next action, unless an answer or a wake-up comes first.
    pub(super) fn next_event(&self, now: Instant) -> Instant {
        // While votes are being confirmed, no other question is due.
        let asks = !self.has_votes(now);
        let voters = self.voters.iter().filter_map(|voter| voter.next_event(now, self.terms.node_timeout, asks));
        voters.chain(self.wait.as_ref().map(|wait| wait.poll_at)).min().unwrap_or_else(|| now.after(POLL))
    }

    /// Returns the ballot to propose to a node together with the lock.
    pub(super) const fn fence(&self) -> Option<Fence> {
        self.fencing.fence()
    }
}
