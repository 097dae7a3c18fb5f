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
//! 4. The extensions are sent when a body has run for `CONFIRM_AFTER`, all together. Their replies turn the claims into
//!    leases, or remove the nodes and thereby stop the body. A shorter body releases the claims, and no extension is
//!    sent. The watchdog sends the extensions, because a body may block its thread for longer than a claim lasts.
//! 5. The extensions are sent before the body begins if a claim is not proven, if less than half of a claim is left,
//!    or if the lock is needed for longer than a claim: another call of the process waits for it, or it may stay idle
//!    afterwards. If the task that waits is not polled meanwhile, the watchdog confirms the claims for it.
//! 6. A fencing number is agreed on together with the extension, so a fenced call waits for the replies. So does a call
//!    whose key has to stay taken after it, because a claim could end first.
//! 7. A claim never revives a lapsed lock, proven or not: another token may have held the lock since. Keys may also have
//!    ended at nodes that the holder still counts on. So a claim that arrives while the lock is held is not counted until
//!    the other voters have confirmed the lock ([`winning_back`](super::winning_back), argument 6).

use super::voter::Voter;
use super::{Candidate, Phase};
use crate::protocol::command::ProvenClaim;
use crate::protocol::lease;
use crate::protocol::rules::Rule;
use crate::protocol::timing::{CONFIRM_AFTER, LOOKS_PER_CLAIM, LOOKS_PER_TTL};
use crate::time::clock::Instant;
use std::time::Duration;

impl Candidate {
    /// Records that node number `index` has handed the lock to us, as a claim that may be `proven`.
    pub(crate) fn claimed(&mut self, index: usize, proven: Option<ProvenClaim>, now: Instant) {
        let claim_end = now.after(self.terms.claim());
        let is_lapsed = self.phase == Phase::Holding && !self.is_proven(now);
        let counts = !is_lapsed || !self.terms.applies(Rule::LapsedLocksStayLost);
        let proven = proven
            .filter(|_| counts && !self.needs_votes_first())
            .map(|claim| self.within_rest(self.terms.claimed_until(claim), now));
        let confirm_at = self.confirm_late_claim_at(now);
        if let Some(voter) = self.voters.get_mut(index) {
            voter.claimed(now, claim_end, proven);
            if let Some(at) = confirm_at {
                voter.confirm_at(at);
            }
        }
        self.note_proof();
    }

    /// Returns the time to confirm a claim that arrives while the lock is held: together with the others, or at once if
    /// they were confirmed before. A claim for which all voters are asked waits as long as at the start of a body, so
    /// that short bodies do not pay for it. Never earlier than now: the voters are asked after the claim has arrived.
    fn confirm_late_claim_at(&self, now: Instant) -> Option<Instant> {
        let alone_at = || if self.needs_votes_first() { now.after(CONFIRM_AFTER) } else { now };
        (self.phase == Phase::Holding).then(|| self.confirmations_due(now).map_or_else(alone_at, |at| at.max(now)))
    }

    /// Returns the time at which a holder confirms its claims, if it has not done so yet.
    fn confirmations_due(&self, now: Instant) -> Option<Instant> {
        if !self.is_held(now) {
            return None;
        }
        let unconfirmed = self.voters.iter().filter(|voter| voter.is_unconfirmed_claim());
        unconfirmed.filter_map(|voter| voter.recheck_at).min()
    }

    /// Plans the confirmation of the claims with which the lock is held from now on.
    pub(super) fn plan_confirmations(&mut self, now: Instant) {
        let at = if self.may_confirm_later() { now.after(CONFIRM_AFTER) } else { now };
        self.confirm_at(at);
    }

    /// Plans the confirmation of all claims that were not confirmed yet.
    fn confirm_at(&mut self, at: Instant) {
        self.voters.iter_mut().for_each(|voter| voter.confirm_at(at));
    }

    /// Records that another call of the process waits for the lock. A claim is too short to be passed on, so it is
    /// confirmed at once. Returns `true` if a confirmation is due now.
    pub(crate) fn set_followed(&mut self, now: Instant) -> bool {
        self.is_followed = true;
        let is_due = self.confirmations_due(now).is_some();
        if is_due {
            self.confirm_at(now);
        }
        is_due
    }

    /// Returns `true` if a body may begin on claims whose extensions were not sent yet.
    pub(crate) fn confirms_later(&self, now: Instant) -> bool {
        let until = || self.fresh_until(|_| true);
        self.may_confirm_later()
            && self.counts_claims(now)
            && until().is_some_and(|end| end >= now.after(self.terms.claim() / 2))
    }

    /// Returns `true` if a claim is long enough for the present call.
    fn may_confirm_later(&self) -> bool {
        let is_needed_for_longer = self.hold_period.lingers() || self.hold_period.is_admission() || self.is_followed;
        !is_needed_for_longer && self.may_rely_on_claims() && !self.is_permit() && !self.adopts
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

    /// Returns the time within which the lock needs a check.
    pub(crate) fn check_within(&self, now: Instant) -> Duration {
        let lasts = self.depends_on_claims_until(now).map_or(self.terms.ttl, |end| end.since(now).min(self.terms.ttl));
        self.confirms_within(now).unwrap_or(Duration::MAX).min(lasts / LOOKS_PER_TTL)
    }

    /// Returns the time until a claim of a held lock has to be confirmed, if one has. A late claim that waits for the
    /// answers of the voters is looked at in between, so that it is extended before it ends.
    fn confirms_within(&self, now: Instant) -> Option<Duration> {
        let unconfirmed = self.voters.iter().filter(|voter| voter.is_unconfirmed_claim() && self.is_held(now));
        let within = |voter: &Voter| {
            let due = voter.recheck_at?.since(now);
            Some(if self.waits_for_others(voter, now) { self.terms.claim() / LOOKS_PER_CLAIM } else { due })
        };
        unconfirmed.filter_map(within).min()
    }

    /// Returns the time within which the watchdog has to ask the voters because of a claim that arrived while the lock
    /// was held.
    pub(crate) fn late_claim_within(&self, now: Instant) -> Option<Duration> {
        let has_one = self.voters.iter().any(|voter| self.is_late_claim(voter));
        self.confirms_within(now).filter(|_| has_one)
    }

    /// Sets if the key has to stay taken after the present call.
    pub(crate) const fn set_kept_afterwards(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }

    /// Returns `true` if a body may begin on claims and leases that were confirmed since there are enough votes, and
    /// enough time is left.
    pub(super) fn is_enterable(&self, now: Instant) -> bool {
        let until = || self.fresh_until(|voter| !voter.is_unconfirmed_claim());
        let is_sent = || until().is_some_and(|end| end >= self.terms.enterable_from(now));
        self.counts_claims(now) && self.may_rely_on_claims() && (is_sent() || self.confirms_later(now))
    }

    /// Returns `true` if the body of the present call may begin before its claims are leases.
    const fn may_rely_on_claims(&self) -> bool {
        !self.fencing.is_wanted() && !self.is_kept
    }
}
