//! What comes in: answers, wake-ups, connections, and clock steps.

use super::{Candidate, Phase, Said};
use crate::lock::OwnerToken;
use crate::protocol::command::{Answer, Reply};
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::time::Duration;

impl Candidate {
    /// Node number `index` has answered the oldest command that it owes an answer to.
    pub(crate) fn answered(&mut self, index: usize, answer: Answer, now: Instant) {
        let is_holding = self.phase == Phase::Holding;
        let counts = if self.is_permit() {
            self.counts_for_permit(index, now)
        } else {
            !is_holding || self.is_continuous(index, now) || !self.terms.applies(Rule::LapsedLocksStayLost)
        };
        self.note_roll(index, &answer);
        self.note_confirmation(index, &answer, counts);
        let may_have_some = answer == Ok(Reply::NotOwner) && self.may_have_some();
        let phase = self.phase;
        if let Ok(Reply::Extended { waiters, .. }) = answer {
            self.waiters = waiters;
        }
        let is_entered = matches!(answer, Ok(Reply::Entered { .. }));
        let Some(voter) = self.voters.get_mut(index) else { return };
        if voter.answered(answer, phase, counts, now) {
            self.contended_since.get_or_insert(now);
        }
        if may_have_some {
            voter.may_have_some();
        }
        if is_entered {
            self.note_entry(index);
        }
    }

    /// Whether a node that says that the token has not all of its names may have others of them.
    fn may_have_some(&self) -> bool {
        self.has_several && self.terms.applies(Rule::PartsLeftAreReleased)
    }

    /// Takes note of what the answers before have proven.
    pub(crate) fn note_proof(&mut self) {
        self.proven_until = self.proven_until.max(self.valid_until());
    }

    /// A name of several may be free at node number `index`, which is asked for all of them at once. What it is asked for already
    /// may have been answered before that.
    pub(crate) fn may_be_free(&mut self, index: usize, now: Instant) {
        let may_ask = matches!(self.phase, Phase::Waiting | Phase::Holding);
        if let Some(voter) = self.voters.get_mut(index).filter(|voter| may_ask && !voter.vote.is_granted()) {
            voter.may_be_free(now);
        }
    }

    /// Somebody else stands in the queue of node number `index`, before us if it is `smaller`.
    pub(crate) fn contended(&mut self, index: usize, is_smaller: bool, now: Instant) {
        self.contended_since.get_or_insert(now);
        self.asked(index, is_smaller);
    }

    /// Somebody who does not wait for the end of the body stands in the queue of node number `index`, before us if it is
    /// `smaller`. To whoever has the lock, that is no reason to give it up.
    pub(crate) fn asked(&mut self, index: usize, is_smaller: bool) {
        if let Some(voter) = self.voters.get_mut(index).filter(|_| is_smaller) {
            voter.is_beaten = true;
        }
    }

    /// A body runs under the lock: who does not wait for its end gives up.
    pub(crate) fn busy(&mut self) {
        if self.said == Said::Nothing {
            self.said = Said::Busy;
        }
    }

    /// The token `by` holds the lock by other nodes, and waits at node number `index`.
    pub(crate) fn wanted(&mut self, index: usize, by: OwnerToken, now: Instant) {
        self.contended_since.get_or_insert(now);
        let yields = self.terms.applies(Rule::WaitersYieldToTheHolder) && self.phase != Phase::Holding;
        if let Some(voter) = self.voters.get_mut(index).filter(|_| yields) {
            voter.remarks.set_wanted_by(Some(by));
        }
    }

    /// Somebody says by node number `index` that he breaks the lock. That proves nothing, so that every node is asked at once. A
    /// lock which stands goes on; but nobody keeps it any longer than it is used, because somebody wants it. Who has not begun
    /// begins by nothing that was granted before.
    pub(crate) fn revoked(&mut self, index: usize, now: Instant) {
        let has_any = self.voters.iter().any(|voter| voter.vote.is_granted() || voter.promised_until().is_some());
        let concerns = match self.phase {
            Phase::Holding => true,
            Phase::Trying | Phase::Waiting => has_any && self.terms.applies(Rule::RevokedGrantsAreVoid),
            Phase::Superseded | Phase::Ended => false,
        };
        if concerns {
            self.contended_since.get_or_insert(now);
            self.said = Said::Broken;
            self.doubt_votes(index, now);
        }
    }

    /// What the nodes have granted is asked for anew, as node number `index` has given reason to.
    fn doubt_votes(&mut self, index: usize, now: Instant) {
        let phase = self.phase;
        let is_asked = |at: usize| at == index || self.terms.applies(Rule::RevokedAskAll);
        for (_, voter) in self.voters.iter_mut().enumerate().filter(|(at, _)| is_asked(*at)) {
            match phase {
                Phase::Trying => voter.refuse(now),
                Phase::Waiting => voter.void(now),
                _ => voter.ask_again(now),
            }
        }
        if !self.terms.applies(Rule::NodesAreBelieved) {
            self.phase = Phase::Superseded;
        }
    }

    /// Whether somebody says that the lock is broken, and the nodes have yet to say whether it is.
    pub(super) fn is_in_doubt(&self, now: Instant) -> bool {
        self.is_revoked() && self.voters.iter().any(|voter| voter.is_due(now) || voter.is_extending())
    }

    /// Whether somebody has said that he breaks the lock.
    pub(crate) fn is_revoked(&self) -> bool {
        self.said == Said::Broken
    }

    /// Takes note of the connections. One that is new has lost what its node told in the meantime, so that a waiting token
    /// asks the node anew.
    pub(crate) fn connections(&mut self, epochs: impl Iterator<Item = u64>, now: Instant) {
        for (voter, epoch) in self.voters.iter_mut().zip(epochs) {
            if voter.connection(epoch) && self.phase == Phase::Waiting {
                voter.cut(now);
            }
        }
    }

    /// There is a new connection to node number `index`, which may have lost what it was told: a holder asks soon whether
    /// its vote still stands. Who waits looks at the [`connections`](Self::connections).
    pub(crate) fn connected(&mut self, index: usize, now: Instant) {
        if let Some(voter) = self.voters.get_mut(index) {
            match self.phase {
                Phase::Holding => voter.can_be_asked_again(now),
                Phase::Trying => voter.has_reconnected = true,
                Phase::Waiting | Phase::Superseded | Phase::Ended => {}
            }
        }
    }

    /// Whether a connection of node number `index` with this `epoch` is another one than before for a holder. Others look at
    /// the [`connections`](Self::connections).
    pub(crate) fn is_served_anew(&mut self, index: usize, epoch: u64) -> bool {
        let voter = self.voters.get_mut(index).filter(|_| self.phase == Phase::Holding);
        voter.is_none_or(|voter| voter.connection(epoch))
    }

    /// The clock of node number `index` went ahead by at most `step`: the leases that it gave before end so much earlier.
    ///
    /// Those are the ones whose answers have come in. Those that are still to come were given after the step, because the
    /// answers of a connection come in the order of its commands. So all answers that are here must be taken in before.
    pub(crate) fn clock_stepped(&mut self, index: usize, step: Duration) {
        self.forget_roll(index);
        if let Some(voter) = self.voters.get_mut(index) {
            voter.shorten(step);
        }
    }
}
