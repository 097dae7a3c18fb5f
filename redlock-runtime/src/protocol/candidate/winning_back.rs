//! How a holder wins missing votes back, and keeps the present ones.
//!
//! Some nodes have no vote for the holder. They were away when the lock was acquired, have forgotten it since, or were
//! asked by a waiter first. A lock on a bare majority is lost with the next node that fails. So a holder keeps asking:
//!
//! 1. *When.* With each renewal. A lock without renewal asks at the corresponding times, as long as it lacks a vote.
//!    The holder also asks at once when a connection is new, and soon after a time that a node named. That is the end
//!    of its abstention, or of the present owner's lease.
//! 2. *Which command.* A node that has voted is asked to extend its lease, which also confirms the vote. Any other node
//!    is asked for the lock by an `ACQUIRE` with `holds`, for a token that holds the lock elsewhere. A tainted node is
//!    asked nothing; neither is a node with an outstanding answer.
//! 3. *Precedence.* A free node gives its vote to the holder before all waiters. At any other node, the holder joins
//!    the queue, and the node notifies its owner of the holder's token. A waiter yields to that token
//!    ([`next`](super::next)), whichever of them is older. No other token could have the lock before the holder ends.
//! 4. *Duration.* A request is for a `ttl`. A lock without renewal asks for the rest of its lease, so that its end is
//!    unchanged. It also counts on a claim that it receives meanwhile for no longer.
//! 5. *Fencing number.* The request proposes the number of the token, because a lost register would otherwise restart
//!    below it.
//! 6. *Order.* The nodes that have voted are asked first, together. A missing vote is requested when each of them has
//!    confirmed the lock, is silent, or is gone. A clock step or an operator can end keys early at several nodes at
//!    once. If the holder won such votes back one by one, it would not notice that another token had all of them in
//!    between. A claim that arrives while the lock is held has the same order: it is extended, and counts, after the
//!    nodes that have voted were asked.
//! 7. *Validity.* A re-granted vote counts only while the other votes prove the lock. After these have lapsed, another
//!    token may have held the lock: it stays lost, however many nodes grant it again.

use super::in_flight::Kind;
use super::vote::Vote;
use super::voter::Voter;
use super::{Candidate, Phase};
use crate::protocol::command::Verb;
use crate::protocol::lease;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::time::Duration;

/// Part of a `ttl` after which a silent node that has voted is not waited for before missing votes are requested.
/// Smaller: a slow node may hide that it has lost the lock. Larger: a lock on a bare majority may end first.
const SILENT_PER_TTL: u32 = 8;

/// Nodes that a holder asks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    None,
    /// Nodes whose vote is missing.
    Lacking,
    /// All nodes, including the present voters.
    All,
}

impl Candidate {
    /// Returns the command that a holder should send to node number `index` by `soon`, because of its vote or together
    /// with others.
    pub(super) fn holder_command(&self, index: usize, round: Round, soon: Instant, now: Instant) -> Option<Verb> {
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
        if self.is_late_claim(voter) && self.waits_for_others(voter, now) {
            return None;
        }
        let verb = if voter.is_claim() { self.extension_verb(ttl) } else { self.renewal_verb(ttl) };
        voter.is_renewable(self.adopts).then_some(verb)
    }

    /// Returns `true` if the vote of `voter` is missing and must be won back. A detached lock may still be stored under
    /// the old token at the node, until the node denies that.
    fn wins_back(&self, voter: &Voter) -> bool {
        let may_be_left = self.adopts && !voter.vote.is_taken();
        // A node gives a permit only under the admission lock, so a permit holder returns to the admission lock for its missing
        // votes.
        !voter.vote.is_granted() && !may_be_left && !self.is_permit() && self.terms.applies(Rule::VotesAreWonBack)
    }

    /// Returns `true` if the vote of `voter` is a claim that arrived while the lock was held, and was not extended yet.
    pub(super) fn is_late_claim(&self, voter: &Voter) -> bool {
        voter.is_unconfirmed_claim() && voter.lease_end().is_none() && self.needs_votes_first()
    }

    /// Returns `true` if a claim counts only after the nodes that have voted were asked.
    pub(super) fn needs_votes_first(&self) -> bool {
        self.phase == Phase::Holding && self.hold_period.renews() && self.terms.applies(Rule::LateClaimsAreConfirmed)
    }

    /// Returns `true` if the nodes that have voted must be asked before `voter`.
    fn comes_after_voters(&self, voter: &Voter) -> bool {
        self.wins_back(voter) && self.terms.applies(Rule::VotersAreAskedFirst) || self.is_late_claim(voter)
    }

    /// Makes sure that the nodes of a renewed lock that have voted are asked before the votes that should be won back
    /// by `soon`.
    pub(super) fn ask_voters_first(&mut self, round: Round, soon: Instant, now: Instant) {
        if !self.hold_period.renews() {
            return;
        }
        let mut asked_from = None;
        for index in 0..self.voters.len() {
            let is_late =
                self.voters.get(index).is_some_and(|voter| voter.is_free_to_ask() && self.comes_after_voters(voter));
            let Some(voter) = self.voters.get_mut(index).filter(|_| is_late) else { continue };
            if round != Round::None || voter.is_due(soon) {
                let due = voter.recheck_at.map_or(now, |at| at.min(now));
                voter.recheck_at = Some(due);
                asked_from = asked_from.max(Some(due));
            }
        }
        let Some(from) = asked_from else { return };
        let is_unasked =
            |voter: &&mut Voter| voter.lease_end().is_some() && voter.extended_at.is_none_or(|at| at < from);
        self.voters.iter_mut().filter(is_unasked).for_each(|voter| voter.schedule_recheck(now));
    }

    /// Returns `true` if the vote of `lacking`, which is due, has to wait for the answers of the nodes that have voted.
    pub(super) fn waits_for_others(&self, lacking: &Voter, now: Instant) -> bool {
        let due = lacking.recheck_at.filter(|_| self.comes_after_voters(lacking));
        let Some(due) = due.filter(|at| *at <= now && self.hold_period.renews()) else { return false };
        // A claim is extended before it ends.
        let patience =
            self.longest_silence().min(if lacking.is_claim() { self.terms.claim() / 2 } else { self.terms.ttl });
        let has_answered = |voter: &Voter| voter.has_answered_since(due, now, patience);
        self.voters.iter().any(|voter| voter.lease_end().is_some() && !has_answered(voter))
    }

    /// Returns the longest wait for nodes that have voted, before missing votes are requested without their answers.
    fn longest_silence(&self) -> Duration {
        self.terms.ttl / SILENT_PER_TTL
    }

    /// Returns the time for which the answers to a renewal are examined: a `node_timeout`, or as long as a missing vote
    /// has to wait for them. The missing vote is requested as soon as they are here, because older answers prove less.
    pub(crate) fn answers_matter_for(&self, node_timeout: Duration) -> Duration {
        if self.lacks_votes() { node_timeout.max(self.longest_silence()) } else { node_timeout }
    }

    /// Returns the duration for which the vote of `voter` is requested; `None` if the request is not worthwhile.
    ///
    /// The duration is never less than the proof of the node, or the proof of an outstanding answer. The last expiry of
    /// a key replaces the earlier ones, so it would end the key while the earlier lease continues here.
    pub(super) fn rest(&self, voter: &Voter, now: Instant) -> Option<Duration> {
        if !self.asks_for_rests() {
            return Some(self.terms.ttl);
        }
        let end = self.end_of_rest(voter, now).filter(|end| *end >= self.terms.useful_from(now))?;
        Some(lease::min_ttl_to_prove(end.since(now), self.terms.drift_factor).min(self.terms.ttl))
    }

    /// Returns the time until which a lock without renewal asks for the vote of `voter`.
    fn end_of_rest(&self, voter: &Voter, now: Instant) -> Option<Instant> {
        voter.promised_until().max(self.end_without_renewal(now))
    }

    /// Returns the end of a lock without renewal.
    fn end_without_renewal(&self, now: Instant) -> Option<Instant> {
        // Claims end soon, so as much is requested for them as when the lock was handed over.
        let begun = self.counts_claims(now).then(|| self.terms.provable(self.hold_period.since()));
        self.valid_until().max(begun)
    }

    fn asks_for_rests(&self) -> bool {
        !self.hold_period.asks_for_whole_leases() && self.terms.applies(Rule::UnrenewedLeasesEnd)
    }

    /// Limits the end of a claim for a lock without renewal. Two claims that such a lock receives near its end would
    /// otherwise prolong it.
    pub(super) fn within_rest(&self, end: Instant, now: Instant) -> Instant {
        let rest = self.end_without_renewal(now).filter(|_| self.phase == Phase::Holding && self.asks_for_rests());
        rest.map_or(end, |rest| rest.min(end))
    }

    /// Returns the lease end that counts when node number `index` grants `verb`. Requests are rounded up to whole
    /// milliseconds; without this limit, the rounding would prolong the rest of a lease with each request.
    pub(super) fn counted_until(&self, index: usize, verb: Verb, now: Instant) -> Instant {
        let proven = self.terms.proven_by(verb, now);
        let is_rest = self.phase == Phase::Holding && verb.ttl().is_some_and(|ttl| ttl < self.terms.ttl);
        let voter = self.voters.get(index).filter(|_| is_rest);
        voter.and_then(|voter| self.end_of_rest(voter, now)).map_or(proven, |end| end.min(proven))
    }

    /// Returns the time to ask for missing votes, if the lock is not renewed before.
    pub(super) fn asks_for_votes_at(&self, valid_until: Instant) -> Option<Instant> {
        self.lacks_votes().then(|| self.hold_period.third_of(valid_until))
    }

    /// Returns `true` if the token holds the lock, and lacks the vote of a node that can give it, or does not count it
    /// yet.
    pub(crate) fn lacks_votes(&self) -> bool {
        let is_lacking = |voter: &Voter| (!voter.vote.is_granted() || self.is_late_claim(voter)) && !voter.is_tainted;
        self.phase == Phase::Holding && self.voters.iter().any(is_lacking)
    }

    /// Returns `true` if the oldest answer of node number `index`, if it is a grant, is valid for a lock that was held.
    /// The extension of a lease that never ended always counts.
    pub(super) fn is_continuous(&self, index: usize, now: Instant) -> bool {
        let is_extended = |voter: &Voter| {
            let is_extension = voter.in_flight.first().is_some_and(|sent| sent.kind == Kind::Extension);
            is_extension && matches!(voter.vote, Vote::Granted { .. })
        };
        self.voters.get(index).is_some_and(is_extended) || self.is_proven(now)
    }
}
