//! Claims: nodes that are handed over, and bodies that begin on proven claims.
//!
//! A claim is a vote that an extension turns into a lease. The extension costs a round trip. A body does not wait for
//! it if the end of the claims is proven:
//!
//! 1. The announcement contains the start and the length of the claim. The node converts the start to the earliest
//!    possible local time (`node/server_clock`). If it cannot, the claim is only a vote.
//! 2. A claim counts for its own length, which the previous owner has chosen. It never counts beyond `CLAIM`, beyond
//!    our `ttl`, or beyond the expiry that an unanswered command may set.
//! 3. A yield in flight voids a claim, and so does a taint, just like a lease.
//! 4. The extensions are sent before the body begins, with or without a proof. Their replies turn the claims into
//!    leases, or remove the nodes and thereby stop the body.
//! 5. A fencing number is agreed on together with the extension, so a fenced call waits for the replies. So does a call
//!    whose key has to stay taken after it, because a claim could end first.
//! 6. A claim never revives a lapsed lock, proven or not: another token may have held the lock since.

use super::voter::Voter;
use super::{Candidate, Phase};
use crate::protocol::command::ProvenClaim;
use crate::protocol::lease;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::time::Duration;

impl Candidate {
    /// Records that node number `index` has handed the lock to us, as a claim that may be `proven`.
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

    /// Returns the end of the claims that count and were not extended yet, if there are any. An outstanding answer may
    /// end them.
    pub(crate) fn claimed_until(&self) -> Option<Instant> {
        self.voters.iter().filter(|voter| voter.is_claim()).filter_map(|voter| voter.vote.lease_end()).max()
    }

    /// Returns `true` if such claims count at `now`.
    pub(crate) fn counts_claims(&self, now: Instant) -> bool {
        self.claimed_until().is_some_and(|end| now < end)
    }

    /// Returns the end of the lock if it would be earlier without claims. The answers to their extensions must be
    /// processed before it.
    pub(crate) fn depends_on_claims_until(&self, now: Instant) -> Option<Instant> {
        if !self.voters.iter().any(Voter::is_claim) {
            return None;
        }
        let leases = self.voters.iter().filter(|voter| !voter.is_claim()).filter_map(Voter::lease_end);
        let by_leases = lease::valid_until(&leases, self.terms.quorum);
        self.valid_until().filter(|end| now < *end && by_leases < Some(*end))
    }

    /// Returns the time for which the lock needs no check after a call has acquired it.
    pub(crate) fn counted_for(&self, now: Instant) -> Duration {
        self.depends_on_claims_until(now).map_or(self.terms.ttl, |end| end.since(now).min(self.terms.ttl))
    }

    /// Sets if the key has to stay taken after the present call.
    pub(crate) const fn set_kept_afterwards(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }

    /// Returns `true` if a body may begin on claims and leases that were confirmed since there are enough votes, and
    /// enough time is left.
    pub(super) fn is_enterable(&self, now: Instant) -> bool {
        let is_sent = |voter: &Voter| !voter.is_claim() || voter.extended_at.is_some();
        let until = || self.fresh_until(is_sent);
        let counts = self.counts_claims(now) && !self.fencing.is_wanted() && !self.is_kept;
        counts && until().is_some_and(|end| end >= self.terms.enterable_from(now))
    }
}
