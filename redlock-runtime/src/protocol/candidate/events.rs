//! Handlers of external events: answers, wake-ups, connections, and clock steps.

use super::{Candidate, HolderNews, Phase};
use crate::lock::OwnerToken;
use crate::protocol::command::{Answer, Reply};
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::time::Duration;

impl Candidate {
    /// Processes the answer of node number `index` to its oldest unanswered command.
    pub(crate) fn answered(&mut self, index: usize, answer: Answer, now: Instant) {
        let is_holding = self.phase == Phase::Holding;
        let counts = if self.is_permit() {
            self.counts_for_permit(index, now)
        } else {
            !is_holding || self.is_continuous(index, now) || !self.terms.applies(Rule::LapsedLocksStayLost)
        };
        self.note_holder_list(index, &answer);
        self.note_confirmation(index, &answer, counts);
        let may_have_some = answer == Ok(Reply::NotOwner) && self.may_have_some();
        let (phase, adopts) = (self.phase, self.adopts);
        match answer {
            Ok(Reply::Extended { waiters, .. }) => self.waiters = waiters,
            Ok(Reply::Queued { rank, .. }) => {
                self.wait.iter_mut().for_each(|wait| wait.most_ahead = wait.most_ahead.max(rank));
            }
            _ => {}
        }
        let is_entered = matches!(answer, Ok(Reply::Entered { .. }));
        let Some(voter) = self.voters.get_mut(index) else { return };
        if voter.answered(answer, phase, counts, now) {
            self.contended_since.get_or_insert(now);
        }
        if may_have_some {
            voter.may_have_some();
            voter.has_leftovers = adopts;
        }
        if is_entered {
            self.note_entry(index);
        }
    }

    /// Returns `true` if a node that denies that the token owns all of its names may have others of them.
    fn may_have_some(&self) -> bool {
        self.has_several && self.terms.applies(Rule::PartsLeftAreReleased)
    }

    /// Records the proofs of the processed answers.
    pub(crate) fn note_proof(&mut self) {
        self.proven_until = self.proven_until.max(self.valid_until());
    }

    /// Records that one of several names may be free at node number `index`, which is asked for all of them at once.
    /// The reply to an earlier question may be older than this message.
    pub(crate) fn on_possibly_free(&mut self, index: usize, now: Instant) {
        let may_ask = matches!(self.phase, Phase::Waiting | Phase::Holding);
        if let Some(voter) = self.voters.get_mut(index).filter(|voter| may_ask && !voter.vote.is_granted()) {
            voter.on_possibly_free(now);
        }
    }

    /// Records that another token waits in the queue of node number `index`, ahead of us if it is `smaller`.
    pub(crate) fn contended(&mut self, index: usize, is_smaller: bool, now: Instant) {
        self.contended_since.get_or_insert(now);
        self.asked(index, is_smaller);
    }

    /// Records a waiter in the queue of node number `index` that does not wait for the end of a body. It is ahead of us
    /// if it is `smaller`. A holder does not give up the lock for it.
    pub(crate) fn asked(&mut self, index: usize, is_smaller: bool) {
        if let Some(voter) = self.voters.get_mut(index).filter(|_| is_smaller) {
            voter.is_beaten = true;
        }
    }

    /// Records that a body runs under the lock. A call that does not wait for its end gives up.
    pub(crate) fn busy(&mut self) {
        if self.said == HolderNews::Nothing {
            self.said = HolderNews::Busy;
        }
    }

    /// Records that the token `by` holds the lock at other nodes, and waits at node number `index`.
    pub(crate) fn wanted(&mut self, index: usize, by: OwnerToken, now: Instant) {
        self.contended_since.get_or_insert(now);
        let yields = self.terms.applies(Rule::WaitersYieldToTheHolder) && self.phase != Phase::Holding;
        if let Some(voter) = self.voters.get_mut(index).filter(|_| yields) {
            voter.hints.set_wanted_by(Some(by));
        }
    }

    /// Records a break message from node number `index`. It proves nothing, so every node is asked at once. A lock that
    /// the nodes confirm stays held, but does not become idle, because it is wanted. A call whose body has not begun
    /// ignores all earlier grants.
    pub(crate) fn revoked(&mut self, index: usize, now: Instant) {
        let has_any = self.voters.iter().any(|voter| voter.vote.is_granted() || voter.promised_until().is_some());
        let concerns = match self.phase {
            Phase::Holding => true,
            Phase::Trying | Phase::Waiting => has_any && self.terms.applies(Rule::RevokedGrantsAreVoid),
            Phase::Superseded | Phase::Ended => false,
        };
        if concerns {
            self.contended_since.get_or_insert(now);
            self.said = HolderNews::Broken;
            self.doubt_votes(index, now);
        }
    }

    /// Requests the granted votes again, because node number `index` has raised a doubt.
    fn doubt_votes(&mut self, index: usize, now: Instant) {
        let phase = self.phase;
        let is_asked = |at: usize| at == index || self.terms.applies(Rule::RevokedAskAll);
        for (_, voter) in self.voters.iter_mut().enumerate().filter(|(at, _)| is_asked(*at)) {
            match phase {
                Phase::Trying => voter.refuse(now),
                Phase::Waiting => voter.void(now),
                _ => voter.schedule_recheck(now),
            }
        }
        if !self.terms.applies(Rule::NodesAreBelieved) {
            self.phase = Phase::Superseded;
        }
    }

    /// Returns `true` if a break was announced, and the nodes have not yet confirmed or denied it.
    pub(super) fn is_in_doubt(&self, now: Instant) -> bool {
        self.is_revoked() && self.voters.iter().any(|voter| voter.is_due(now) || voter.is_extending())
    }

    /// Returns `true` if a break of the lock was announced.
    pub(crate) fn is_revoked(&self) -> bool {
        self.said == HolderNews::Broken
    }

    /// Records the present connections. Messages of a node may have been lost before a new connection, so a waiting
    /// token asks the node again.
    pub(crate) fn connections(&mut self, epochs: impl Iterator<Item = u64>, now: Instant) {
        for (voter, epoch) in self.voters.iter_mut().zip(epochs) {
            if voter.connection(epoch) && self.phase == Phase::Waiting {
                voter.cut(now);
            }
        }
    }

    /// Records a new connection to node number `index`, which may have lost its data. A holder soon checks its vote
    /// there. A waiting token examines the [`connections`](Self::connections) instead.
    pub(crate) fn connected(&mut self, index: usize, now: Instant) {
        if let Some(voter) = self.voters.get_mut(index) {
            match self.phase {
                Phase::Holding => voter.on_holder_reconnected(now),
                Phase::Trying => voter.has_reconnected = true,
                Phase::Waiting | Phase::Superseded | Phase::Ended => {}
            }
        }
    }

    /// Returns `true` if a connection of node number `index` with this `epoch` is new for a holder. Returns `true` in
    /// every other phase, because such tokens examine the [`connections`](Self::connections).
    pub(crate) fn note_connection_epoch(&mut self, index: usize, epoch: u64) -> bool {
        let voter = self.voters.get_mut(index).filter(|_| self.phase == Phase::Holding);
        voter.is_none_or(|voter| voter.connection(epoch))
    }

    /// Records that the clock of node number `index` went ahead by at most `step`: the leases that it gave before end
    /// earlier by `step`.
    ///
    /// These are the leases whose answers were processed. Outstanding answers belong to leases from after the step,
    /// because the answers of a connection arrive in the order of its commands. So all arrived answers must be
    /// processed before this call.
    pub(crate) fn on_clock_step(&mut self, index: usize, step: Duration) {
        self.forget_holder_list(index);
        if let Some(voter) = self.voters.get_mut(index) {
            voter.shorten(step);
        }
    }
}
