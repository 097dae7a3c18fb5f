//! Claims: what a node hands over, and that a body begins by claims that are proven.
//!
//! A claim is a vote, which an extension turns into a lease. That costs a round trip, for which the body need not wait if it is
//! proven until when the nodes keep the claims:
//!
//! 1. The announcement tells when the claim began, and how long it is. When that was by our clock at the earliest, the node
//!    finds out (`node/server_clock`). Where it cannot, the claim is a vote and nothing more.
//! 2. It is counted for its own length, which is up to whoever had the lock before. But not for longer than our `ttl`, which
//!    an extension that is executed meanwhile gives to the key.
//! 3. A yield on its way voids it, and so does taint, as with a lease.
//! 4. The extensions go out before the body begins, as they do without a proof. Their answers make leases of the claims, or
//!    take the nodes out and thereby stop the body.
//! 5. A number is drawn together with the extension, so that a call that wants one waits for the answers.

use super::Candidate;
use super::voter::Voter;
use crate::protocol::command::ProvenClaim;
use crate::time::clock::Instant;

impl Candidate {
    /// Node number `index` has handed the lock to us, as a claim that may be `proven`.
    pub(crate) fn claimed(&mut self, index: usize, proven: Option<ProvenClaim>, now: Instant) {
        let claim_end = now.after(self.terms.claim());
        let proven = proven.map(|claim| self.terms.claimed_until(claim));
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

    /// Whether the lock is ours for long enough to begin a body, by claims and leases that were heard of since there are enough
    /// votes.
    pub(super) fn is_enterable(&self, now: Instant) -> bool {
        let is_sent = |voter: &Voter| !voter.is_claim() || voter.extended_at.is_some();
        let until = || self.fresh_until(is_sent);
        let counts = self.counts_claims(now) && !self.fencing.is_wanted();
        counts && until().is_some_and(|end| end >= self.terms.enterable_from(now))
    }
}
