//! Claims: what a node hands over, and that a body begins by claims that are proven.
//!
//! A claim is a vote, which an extension turns into a lease. That costs a round trip, for which the body need not wait if it is
//! proven until when the nodes keep the claims:
//!
//! 1. The announcement tells when the claim began, and how long it is. When that was by our clock at the earliest, the node
//!    finds out (`node/server_clock`). Where it cannot, the claim is a vote and nothing more.
//! 2. It is counted for its own length, which is up to whoever had the lock before. But not for longer than any claim is; nor
//!    than our `ttl`, or what else an unanswered command may give to the key that is executed meanwhile.
//! 3. A yield on its way voids it, and so does taint, as with a lease.
//! 4. The extensions go out before the body begins, as they do without a proof. Their answers make leases of the claims, or
//!    take the nodes out and thereby stop the body.
//! 5. A number is drawn together with the extension, so that a call that wants one waits for the answers. So does a call whose
//!    key has to stay taken after it: a claim ends by itself before that.
//! 6. A lock that has lapsed is won back by no claim, proven or not: somebody else may have had it in between.

use super::voter::Voter;
use super::{Candidate, Phase};
use crate::protocol::command::ProvenClaim;
use crate::protocol::lease;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::time::Duration;

impl Candidate {
    /// Node number `index` has handed the lock to us, as a claim that may be `proven`.
    pub(crate) fn claimed(&mut self, index: usize, proven: Option<ProvenClaim>, now: Instant) {
        let claim_end = now.after(self.terms.claim());
        let is_lapsed = self.phase == Phase::Holding && !self.is_proven(now);
        let counts = !is_lapsed || !self.terms.applies(Rule::LapsedLocksStayLost);
        let proven = proven.filter(|_| counts).map(|claim| self.within_rest(self.terms.claimed_until(claim), now));
        if let Some(voter) = self.voters.get_mut(index) {
            voter.claimed(now, claim_end, proven);
        }
        self.note_proof();
    }

    /// Until when claims are counted that were not extended yet, if there are any: an answer that is still to come may end them.
    pub(crate) fn claimed_until(&self) -> Option<Instant> {
        self.voters.iter().filter(|voter| voter.is_claim()).filter_map(|voter| voter.vote.lease_end()).max()
    }

    /// Whether such claims are counted at `now`.
    pub(crate) fn counts_claims(&self, now: Instant) -> bool {
        self.claimed_until().is_some_and(|end| now < end)
    }

    /// Until when the lock is ours, if it would be over earlier without claims: their answers must be taken in before.
    pub(crate) fn stands_on_claims_until(&self, now: Instant) -> Option<Instant> {
        if !self.voters.iter().any(Voter::is_claim) {
            return None;
        }
        let leases = self.voters.iter().filter(|voter| !voter.is_claim()).filter_map(Voter::lease_end);
        let by_leases = lease::valid_until(&leases, self.terms.quorum);
        self.valid_until().filter(|end| now < *end && by_leases < Some(*end))
    }

    /// For how long the lock can be left alone when a call has just got it.
    pub(crate) fn counted_for(&self, now: Instant) -> Duration {
        self.stands_on_claims_until(now).map_or(self.terms.ttl, |end| end.since(now).min(self.terms.ttl))
    }

    /// The key has to stay taken after the present call.
    pub(crate) const fn keep_afterwards(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }

    /// Whether the lock is ours for long enough to begin a body, by claims and leases that were heard of since there are enough
    /// votes.
    pub(super) fn is_enterable(&self, now: Instant) -> bool {
        let is_sent = |voter: &Voter| !voter.is_claim() || voter.extended_at.is_some();
        let until = || self.fresh_until(is_sent);
        let counts = self.counts_claims(now) && !self.fencing.is_wanted() && !self.is_kept;
        counts && until().is_some_and(|end| end >= self.terms.enterable_from(now))
    }
}
