//! What to ask the nodes next, and when.
//!
//! A waiting candidate wants of one node, first match first:
//!
//! 1. *Enough votes are ours*: an extension of each vote that is a claim, or a lease that is as good as over. It confirms
//!    the votes. Nothing else is asked then, and nothing is yielded.
//! 2. *A smaller token waits at a node that is ours*, or one that holds the lock elsewhere: a yield, at once and without
//!    waiting for other nodes, because everybody else may wait for it. To a holder, it names it.
//! 3. *The time to ask again has come*: its place in the queue, and with it the lock if that is free.
//!
//! A holder extends claims that came late, asks for what it lacks ([`winning_back`](super::winning_back)), and yields
//! nothing. No other phase asks for anything.

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

/// A command that goes out to node number `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) index: usize,
    pub(crate) verb: Verb,
    pub(crate) fence: Option<Fence>,
    /// The token that a yield names.
    pub(crate) other: Option<OwnerToken>,
}

impl Candidate {
    /// Asks node number `index`.
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
            let other = voter.remarks.wanted_by().filter(|_| matches!(verb, Verb::Yield { .. }));
            if self.phase == Phase::Holding {
                voter.recheck_at = None;
            }
            voter.asked(InFlight::new(verb, now, lease_end));
            send(Outgoing { index, verb, fence, other });
        }
    }

    /// Asks every node that takes more commands. `now` must be before the first send.
    pub(super) fn ask_all(&mut self, verb: Verb, fence: Option<Fence>, now: Instant, send: &mut impl FnMut(Outgoing)) {
        for index in 0..self.voters.len() {
            if self.voters.get(index).is_some_and(Voter::is_open) {
                self.ask(index, verb, fence, now, send);
            }
        }
    }

    /// Sends what the nodes should be asked next. Whether anything was.
    ///
    /// `is_ready` says of a node whether a place in its queue can be asked for: its wake-ups will arrive, or there is no
    /// connection at all.
    pub(crate) fn next_commands(
        &mut self,
        now: Instant,
        is_ready: impl Fn(usize) -> bool,
        mut send: impl FnMut(Outgoing),
    ) -> bool {
        if self.asks_for_nothing(now) {
            return false;
        }
        self.count_votes(now);
        let (mut has_asked, fence) = (false, self.fencing.fence());
        for index in 0..self.voters.len() {
            if let Some(verb) = self.wants_next(index, now)
                && (is_ready(index) || !self.postpones(index, verb, now))
            {
                let fence = match verb {
                    // Who yields owns nothing that a number could be for.
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

    /// Gives back what tainted nodes may have of the token: it is of no use to the token, and others wait for it.
    pub(crate) fn leave_tainted(&mut self, now: Instant, leave: impl FnMut(usize, LastCommand)) {
        self.leave_where(now, |voter| voter.is_tainted, leave);
    }

    /// The command that node number `index` should be sent next.
    #[cfg(test)]
    pub(super) fn wants(&self, index: usize, now: Instant) -> Option<Verb> {
        if self.asks_for_nothing(now) { None } else { self.wants_next(index, now) }
    }

    /// Who has lost the lock asks for nothing: it could not count.
    fn asks_for_nothing(&self, now: Instant) -> bool {
        self.phase == Phase::Holding && !self.is_proven(now)
    }

    /// The command that node number `index` should be sent next, if any is to be sent.
    fn wants_next(&self, index: usize, now: Instant) -> Option<Verb> {
        let voter = self.voters.get(index)?;
        let (ttl, claim) = (self.terms.ttl, self.terms.claim());
        match self.phase {
            Phase::Holding if voter.is_claim() && self.wants_extension(voter, now) => {
                self.rest(voter, now).map(|ttl| self.extension_verb(ttl))
            }
            Phase::Holding => self.holder_asks(index, Round::None, now, now),
            Phase::Waiting if self.has_votes(now) => self.wants_extension(voter, now).then(|| self.extension_verb(ttl)),
            Phase::Waiting if voter.must_yield() && self.may_yield(now) => Some(Verb::Yield { claim }),
            Phase::Waiting => voter.wants_to_ask(now).then_some(Verb::Acquire { ttl, claim, holds: false }),
            Phase::Trying | Phase::Superseded | Phase::Ended => None,
        }
    }

    fn wants_extension(&self, voter: &Voter, now: Instant) -> bool {
        // The same ballot has to be accepted by a quorum, so that all who have voted are asked together.
        let useful_from = if self.fencing.is_wanted() { self.terms.provable(now) } else { self.terms.useful_from(now) };
        voter.wants_extension(now, useful_from, self.fresh_from(), self.terms.node_timeout)
    }

    /// Without the rule, a yield waits until every node has answered.
    fn may_yield(&self, now: Instant) -> bool {
        let has_answered = |voter: &Voter| voter.vote != Vote::Open && !voter.is_late(now, Duration::ZERO);
        self.terms.applies(Rule::YieldAtOnce) || self.voters.iter().all(has_answered)
    }

    /// Whether node number `index` had better be asked a little later, because its wake-ups do not arrive yet.
    pub(super) fn postpones(&mut self, index: usize, verb: Verb, now: Instant) -> bool {
        let is_early =
            matches!(verb, Verb::Acquire { .. }) && self.wait.as_ref().is_some_and(|wait| wait.is_early(now));
        if let Some(voter) = self.voters.get_mut(index).filter(|_| is_early) {
            voter.ask_again(now.after(LISTENING_PAUSE));
        }
        is_early
    }

    /// When there is something to do, if no answer and no wake-up comes before.
    pub(super) fn next_event(&self, now: Instant) -> Instant {
        // Votes that are being confirmed leave nothing to ask for.
        let asks = !self.has_votes(now);
        let voters = self.voters.iter().filter_map(|voter| voter.next_event(now, self.terms.node_timeout, asks));
        voters.chain(self.wait.as_ref().map(|wait| wait.poll_at)).min().unwrap_or_else(|| now.after(POLL))
    }

    /// What is asked of a node together with the lock.
    pub(super) const fn fence(&self) -> Option<Fence> {
        self.fencing.fence()
    }
}
