//! How a holder wins back the votes that it lacks, and keeps those that it has.
//!
//! A node that was away when the lock was taken, that has forgotten it since, or that a waiter asked first, has no vote for
//! the holder. A lock that stands on a bare majority is lost with the next node that fails, and so a holder goes on asking:
//!
//! 1. *When.* With each renewal; a lock that is not renewed asks at the same times, as long as it lacks a vote. At once when
//!    a connection is new, and soon after the time that a node named: the end of its abstention, or of the lease of
//!    whoever has it there.
//! 2. *What.* A node that has given its vote extends it, and says by that whether it still stands. Any other is asked for
//!    the lock by an `ACQUIRE` which says that the token holds it. A tainted node is asked nothing, and neither is one that
//!    owes an answer.
//! 3. *Who gives way.* A node that is free gives its vote before all who wait. At any other the holder takes a place in the
//!    queue, and who has the node is told by whom it is wanted: a waiter yields to that token ([`next`](super::next)),
//!    whichever of them is older. Nobody else could have the lock before the holder ends.
//! 4. *For how long.* For a `ttl`. A lock that is not renewed asks for the rest of its lease, so that it ends when it would, and counts on
//!    no claim for longer that is handed to it meanwhile.
//! 5. *With which number.* With that of the token: a register that was lost would otherwise begin below it.
//! 6. *After whom.* The nodes that have given their votes are asked first, together, and the vote that is lacking when each
//!    of them has answered that it still has the lock, or is silent or gone. Keys can end before their time, by the step of
//!    a clock or somebody's hand, at several nodes at once. Won back one by one they would hide from the holder that another
//!    had them all in between.
//! 7. *What counts.* A vote that is granted anew counts only while the others prove the lock. When they have lapsed,
//!    somebody else may have had it in between: the lock stays lost, however many nodes grant it again.

use super::in_flight::Kind;
use super::vote::Vote;
use super::voter::Voter;
use super::{Candidate, Phase};
use crate::protocol::command::Verb;
use crate::protocol::lease;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::time::Duration;

/// A node that has voted and is silent for this part of a ttl is not waited for before others are won back. Smaller, and a
/// node that is just slow may hide that it has lost the lock; larger, and a lock on a bare majority may end before.
const SILENT_PER_TTL: u32 = 8;

/// Which nodes a holder asks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    None,
    /// Those whose vote it lacks.
    Lacking,
    /// Those, and those that have given theirs.
    All,
}

impl Candidate {
    /// What a holder should ask of node number `index`, if it is to be asked by `soon`: because of its vote, or together
    /// with others.
    pub(super) fn holder_asks(&self, index: usize, round: Round, soon: Instant, now: Instant) -> Option<Verb> {
        let voter = self.voters.get(index)?;
        let is_lacking = !voter.vote.is_granted();
        let is_in_round = round == Round::All || round == Round::Lacking && is_lacking;
        if !is_in_round && !voter.is_due(soon) {
            return None;
        }
        let ttl = self.rest(voter, now)?;
        if self.wins_back(voter) {
            let may_ask = voter.is_free_to_ask() && !self.waits_for_others(voter, now);
            return may_ask.then(|| Verb::Acquire { ttl, claim: self.terms.claim(), holds: true });
        }
        voter.is_renewable(self.adopts).then(|| self.renewal_verb(ttl))
    }

    /// Whether the vote of `voter` is lacking, and asked for as one that is won back. A lock that was left with another
    /// token may be there under that one, until the node says that it is not.
    fn wins_back(&self, voter: &Voter) -> bool {
        let may_be_left = self.adopts && !voter.vote.is_taken();
        // A permit is given to those that stand in the turnstile, and to nobody else: whoever has it comes back there.
        !voter.vote.is_granted() && !may_be_left && !self.is_permit() && self.terms.applies(Rule::VotesAreWonBack)
    }

    /// Sees to it that, of a lock that is renewed, those who have voted are asked before those whose votes are to be won
    /// back by `soon`.
    pub(super) fn ask_voters_first(&mut self, round: Round, soon: Instant, now: Instant) {
        if !self.hold_period.renews() || !self.terms.applies(Rule::VotersAreAskedFirst) {
            return;
        }
        let mut asked_from = None;
        for index in 0..self.voters.len() {
            let wins_back = self.voters.get(index).is_some_and(|voter| voter.is_free_to_ask() && self.wins_back(voter));
            let Some(voter) = self.voters.get_mut(index).filter(|_| wins_back) else { continue };
            if round != Round::None || voter.is_due(soon) {
                let due = voter.recheck_at.map_or(now, |at| at.min(now));
                voter.recheck_at = Some(due);
                asked_from = asked_from.max(Some(due));
            }
        }
        let Some(from) = asked_from else { return };
        let is_unasked = |voter: &&mut Voter| voter.vote.is_granted() && voter.extended_at.is_none_or(|at| at < from);
        self.voters.iter_mut().filter(is_unasked).for_each(|voter| voter.ask_again(now));
    }

    /// Whether the vote of `lacking`, which is due, has to wait for what those say who have voted.
    pub(super) fn waits_for_others(&self, lacking: &Voter, now: Instant) -> bool {
        let due = lacking.recheck_at.filter(|_| self.terms.applies(Rule::VotersAreAskedFirst));
        let Some(due) = due.filter(|at| *at <= now && self.hold_period.renews()) else { return false };
        let has_answered = |voter: &Voter| voter.has_answered_since(due, now, self.longest_silence());
        self.voters.iter().any(|voter| voter.lease_end().is_some() && !has_answered(voter))
    }

    /// How long those who have voted may take to answer before the votes that are lacking are asked for without them.
    fn longest_silence(&self) -> Duration {
        self.terms.ttl / SILENT_PER_TTL
    }

    /// For how long the answers to a renewal are to be looked for: for a `node_timeout`, or as long as a lacking vote has to wait for
    /// them. It is asked for as soon as they are here: what they say is worth less with the time.
    pub(crate) fn answers_matter_for(&self, node_timeout: Duration) -> Duration {
        if self.lacks_votes() { node_timeout.max(self.longest_silence()) } else { node_timeout }
    }

    /// For how long the vote of `voter` is asked for; `None` when that is not worth it.
    ///
    /// Never for less than what the node has proven, or will when it answers: the last expiry that a key is given is the one
    /// that counts, and would end it while the lease of the one before goes on here.
    pub(super) fn rest(&self, voter: &Voter, now: Instant) -> Option<Duration> {
        if !self.asks_for_rests() {
            return Some(self.terms.ttl);
        }
        let end = self.end_of_rest(voter, now).filter(|end| *end >= self.terms.useful_from(now))?;
        Some(lease::that_proves(end.since(now), self.terms.drift_factor).min(self.terms.ttl))
    }

    /// Until when a lock that is not renewed asks for the vote of `voter`.
    fn end_of_rest(&self, voter: &Voter, now: Instant) -> Option<Instant> {
        voter.promised_until().max(self.end_without_renewal(now))
    }

    /// When the lock ends that is not renewed.
    fn end_without_renewal(&self, now: Instant) -> Option<Instant> {
        // The ends of claims are near: of those, as much is asked for as when the lock was handed over.
        let begun = self.counts_claims(now).then(|| self.terms.provable(self.hold_period.since()));
        self.valid_until().max(begun)
    }

    fn asks_for_rests(&self) -> bool {
        !self.hold_period.asks_for_whole_leases() && self.terms.applies(Rule::UnrenewedLeasesEnd)
    }

    /// Until when a claim counts that a node has given until `end`: two that are handed to a lock that is not renewed, when little is
    /// left of it, would make it last longer.
    pub(super) fn within_rest(&self, end: Instant, now: Instant) -> Instant {
        let rest = self.end_without_renewal(now).filter(|_| self.phase == Phase::Holding && self.asks_for_rests());
        rest.map_or(end, |rest| rest.min(end))
    }

    /// The lease end that counts when node number `index` grants `verb`. Whole milliseconds are asked for: counted from one
    /// question to the next, what they are more than the rest of a lease would make that longer each time.
    pub(super) fn counted_until(&self, index: usize, verb: Verb, now: Instant) -> Instant {
        let proven = self.terms.proven_by(verb, now);
        let is_rest = self.phase == Phase::Holding && verb.ttl().is_some_and(|ttl| ttl < self.terms.ttl);
        let voter = self.voters.get(index).filter(|_| is_rest);
        voter.and_then(|voter| self.end_of_rest(voter, now)).map_or(proven, |end| end.min(proven))
    }

    /// When to ask for votes that are lacking, if the lock is not renewed by then.
    pub(super) fn asks_for_votes_at(&self, valid_until: Instant) -> Option<Instant> {
        self.lacks_votes().then(|| self.hold_period.third_of(valid_until))
    }

    /// Whether the token holds the lock, and a node has no vote for it that can have one.
    pub(crate) fn lacks_votes(&self) -> bool {
        let is_lacking = |voter: &Voter| !voter.vote.is_granted() && !voter.is_tainted;
        self.phase == Phase::Holding && self.voters.iter().any(is_lacking)
    }

    /// Whether the oldest answer of node number `index`, should it be a grant, counts for a lock that was held: an extension
    /// of a lease that never ended always does.
    pub(super) fn is_continuous(&self, index: usize, now: Instant) -> bool {
        let is_extended = |voter: &Voter| {
            let is_extension = voter.in_flight.first().is_some_and(|sent| sent.kind == Kind::Extension);
            is_extension && matches!(voter.vote, Vote::Granted { .. })
        };
        self.voters.get(index).is_some_and(is_extended) || self.is_proven(now)
    }
}
