//! First try for a free lock: all nodes are asked at once, or one of them before the others.

use super::Candidate;
use super::next::Outgoing;
use super::vote::Vote;
use super::voter::Voter;
use crate::error::NodeError;
use crate::protocol::command::Verb;
use crate::protocol::quorum::Verdict;
use crate::time::clock::Instant;

impl Candidate {
    /// Asks every node for the lock at once, without a place in the queues. `now` must be before the first send.
    pub(crate) fn try_at_once(&mut self, now: Instant, mut send: impl FnMut(Outgoing)) {
        self.ask_all(Verb::SetNx { ttl: self.terms.ttl }, self.fence(), now, &mut send);
    }

    /// Asks only node number `index` for the lock, before all others. `now` must be before the send.
    pub(crate) fn try_at(&mut self, index: usize, now: Instant, mut send: impl FnMut(Outgoing)) {
        if self.voters.get(index).is_some_and(Voter::is_open) {
            self.ask(index, Verb::SetNx { ttl: self.terms.ttl }, self.fence(), now, &mut send);
        }
    }

    /// Asks all other nodes.
    pub(crate) fn try_at_others(&mut self, asked: usize, now: Instant, mut send: impl FnMut(Outgoing)) {
        for index in (0..self.voters.len()).filter(|index| *index != asked) {
            self.try_at(index, now, &mut send);
        }
    }

    /// Returns the outcome of the try at node number `index`.
    pub(crate) fn tried_at(&self, index: usize) -> Verdict {
        match self.voters.get(index).map(|voter| voter.vote) {
            Some(Vote::Open) => Verdict::Open,
            Some(Vote::Granted { .. } | Vote::Claimed { .. }) => Verdict::Reached,
            Some(Vote::Taken { .. }) => Verdict::Contended,
            Some(Vote::Failed) | None => Verdict::OutOfReach,
        }
    }

    /// Returns the outcome of the try as soon as it is decided. It never waits for a node that cannot change the
    /// outcome.
    pub(crate) fn tried(&self) -> Verdict {
        self.verdict()
    }

    /// Takes the lock, if enough votes were given in time.
    pub(crate) fn conclude_try(&mut self, verdict: Verdict, now: Instant) -> Verdict {
        if verdict != Verdict::Reached {
            return verdict;
        }
        if !self.is_won(now) {
            self.fail_as_too_late();
            return Verdict::OutOfReach;
        }
        self.hold(now);
        Verdict::Reached
    }

    /// Ends the try at its time limit: regards every node without an answer as failed with `error`, and decides.
    pub(crate) fn give_up_try(&mut self, error: &NodeError) -> Verdict {
        for voter in self.voters.iter_mut().filter(|voter| voter.vote == Vote::Open) {
            voter.vote = Vote::Failed;
            voter.hints.set_failure(Some(error.clone()));
        }
        self.verdict()
    }

    /// Records that the answers came when the lease was nearly over: the round has failed at every node.
    pub(super) fn fail_as_too_late(&mut self) {
        for voter in self.voters.iter_mut().filter(|voter| voter.hints.failure().is_none()) {
            voter.hints.set_failure(Some(NodeError::TooLate));
        }
    }
}
