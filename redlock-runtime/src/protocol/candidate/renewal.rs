//! Times of renewals of a held lock, and the outcome of an extension.
//!
//! 1. A renewal is due after a third of the lease time that was left at the last one
//!    ([`HoldPeriod::renewal_due`](super::hold_period::HoldPeriod)), unless the call does not need a longer lease.
//! 2. A watchdog of many locks renews those together that are due soon, and chooses how soon.
//! 3. A renewal asks every node without an outstanding extension, and proposes no fencing number. Nodes without a vote
//!    for the token are asked for it ([`winning_back`](super::winning_back)).
//! 4. An expired lock is also due, as long as a caller watches for the loss.
//! 5. While the lock depends on claims, the answers to their extensions are processed well before the claims end. Later
//!    answers could not save the lock.
//! 6. An extension of a permit counts only if it is processed before the lease of its node ends. So a permit is
//!    examined just before that end, as long as the node's answer is outstanding.

use super::fencing_number::Fence;
use super::next::Outgoing;
use super::voter::Voter;
use super::winning_back::Round;
use super::{Candidate, Phase};
use crate::protocol::command::Verb;
use crate::protocol::quorum::Verdict;
use crate::protocol::rules::Rule;
use crate::protocol::timing::{LAST_LOOK_PER_TTL, LOOKS_PER_CLAIM};
use crate::time::clock::Instant;
use std::time::Duration;

/// Action that a lock needs from its watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Lock is not held and needs no action.
    Nothing,
    /// Lock must be renewed, or its loss must be announced.
    Due,
    /// Lock must be renewed at that time, and may be renewed a little earlier together with others.
    DueAt(Instant),
    /// Lock needs no action before that time.
    Later(Instant),
}

/// Outcome of an extension that a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    /// Outstanding answers may still decide.
    Open,
    Extended,
    /// Lock is lost, or the present call may not continue with it.
    NotOurs,
    /// Too few nodes have answered.
    Unanswered,
}

impl Candidate {
    /// Returns the action that is due at `now`, together with everything that is due until `soon`. `is_watched`: a
    /// caller watches for the loss of the lock.
    pub(crate) fn look(&self, now: Instant, soon: Instant, is_watched: bool) -> Look {
        if self.phase == Phase::Waiting && self.confirms_later(now) {
            // The task that waits has not begun its body yet, and may not be polled before the claims end.
            return Look::Due;
        }
        if self.phase != Phase::Holding {
            return Look::Nothing;
        }
        let valid_until = self.valid_until();
        let held_until = valid_until.map(|end| self.capped(end)).filter(|end| now < *end);
        let Some((valid_until, end)) = valid_until.zip(held_until) else {
            return if is_watched { Look::Due } else { Look::Nothing };
        };
        if self.is_in_doubt(soon) {
            // The process that breaks the lock waits for the answers.
            return Look::Due;
        }
        let asks = self.voters.iter().filter(|voter| voter.is_free_to_ask()).filter_map(|voter| voter.recheck_at).min();
        let end = [self.answers_due(now), self.late_extensions_due(now)].into_iter().flatten().fold(end, Instant::min);
        match self.renewal_due(valid_until).into_iter().chain(asks).min() {
            Some(due) if due <= soon => Look::Due,
            Some(due) if due < end => Look::DueAt(due),
            _ => Look::Later(end),
        }
    }

    /// Returns the time of the next check of a lock that is renewed at `now`, if all nodes that have voted grant new
    /// leases. Returns `None` if not all nodes are asked, or such an outcome is unlikely. The sender processes the
    /// answers, and checks if the next check must be earlier.
    pub(crate) fn check_time_after_renewal(&self, now: Instant, soon: Instant) -> Option<Instant> {
        let is_held = self.is_held(now) && self.depends_on_claims_until(now).is_none();
        let is_plain = is_held && !self.is_in_doubt(now) && self.round_due(soon) == Round::All;
        let expected = self.terms.provable(now);
        let due = self.hold_period.next_renewal(now, self.valid_until()?, expected).filter(|_| is_plain)?;
        Some(due.min(self.capped(expected)))
    }

    /// Returns the time to process the answers to the extensions of claims, if the lock depends on claims.
    pub(super) fn answers_due(&self, now: Instant) -> Option<Instant> {
        let left = self.depends_on_claims_until(now)?.since(now);
        Some(now.after(left / LOOKS_PER_CLAIM))
    }

    /// Returns the time to process outstanding answers to extensions of a permit: just before the first lease of these
    /// nodes ends. Later, the answer counts for nothing (see [`permits`](super::permits), argument 5), although the
    /// node has kept the permit, and one more failing node would end it.
    fn late_extensions_due(&self, now: Instant) -> Option<Instant> {
        if !self.is_permit() {
            return None;
        }
        let margin = self.terms.node_timeout.min(self.terms.ttl / LAST_LOOK_PER_TTL);
        let ends = self.voters.iter().filter(|voter| voter.is_extending()).filter_map(Voter::lease_end);
        ends.map(|end| end.before(margin)).filter(|due| now < *due).min()
    }

    /// Returns the time of the next question to every node, for a new lease or for a missing vote.
    fn renewal_due(&self, valid_until: Instant) -> Option<Instant> {
        self.hold_period.renewal_due(valid_until).or_else(|| self.asks_for_votes_at(valid_until))
    }

    /// Returns the nodes that must be asked together by `soon`.
    fn round_due(&self, soon: Instant) -> Round {
        let Some(end) = self.valid_until() else { return Round::None };
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= soon);
        if is_due(self.hold_period.renewal_due(end)) {
            Round::All
        } else if is_due(self.asks_for_votes_at(end)) {
            Round::Lacking
        } else {
            Round::None
        }
    }

    /// Returns `true` if several nodes must be asked by `soon` because of the age of their leases, not for individual
    /// reasons.
    pub(crate) fn is_round_due(&self, soon: Instant) -> bool {
        self.round_due(soon) != Round::None
    }

    /// Requests new leases and missing votes, as far as they are due by `soon`. Returns `false` if the lock is lost,
    /// which must be announced. A waiting token confirms its claims, as if another call waited behind it.
    pub(crate) fn renew(&mut self, now: Instant, soon: Instant, mut send: impl FnMut(Outgoing)) -> bool {
        if self.phase == Phase::Waiting {
            self.set_followed(now);
            self.next_commands(now, |_| true, send);
            return true;
        }
        let is_held = self.is_held(now);
        if is_held && self.terms.applies(Rule::LeasesAreRenewed) {
            let round = self.round_due(soon);
            if let Some(valid_until) = self.valid_until().filter(|_| round != Round::None) {
                self.hold_period.renewed(now, valid_until);
            }
            self.ask_voters_first(round, soon, now);
            for index in 0..self.voters.len() {
                if let Some(verb) = self.holder_command(index, round, soon, now) {
                    let fence = self.fence_of_holder(index, verb);
                    self.ask(index, verb, fence, now, &mut send);
                } else if self.needs_no_request(index, now)
                    && let Some(voter) = self.voters.get_mut(index)
                {
                    voter.recheck_at = voter.recheck_at.filter(|at| *at > soon);
                }
            }
        }
        is_held
    }

    /// Returns `true` if node number `index` could be asked at `now`, without a reason to do so.
    fn needs_no_request(&self, index: usize, now: Instant) -> bool {
        self.voters.get(index).is_some_and(|voter| voter.is_free_to_ask() && !self.waits_for_others(voter, now))
    }

    /// Returns the ballot that a holder proposes to node number `index` together with its command. A vote that is won
    /// back comes with the number of the token. So does the adoption of a detached lock at a node that could not be
    /// asked before, and the confirmation of a claim. The extension of a lease does not change the number.
    pub(super) fn fence_of_holder(&self, index: usize, verb: Verb) -> Option<Fence> {
        let is_lacking = || self.voters.get(index).is_some_and(|voter| !voter.vote.is_granted());
        let is_claim = || self.voters.get(index).is_some_and(Voter::is_claim);
        let is_new = match verb {
            Verb::Acquire { .. } => true,
            Verb::Adopt { .. } => is_lacking() || is_claim(),
            Verb::Extend { .. } => is_claim(),
            _ => false,
        };
        let wants = is_new && self.terms.applies(Rule::WonVotesCarryTheNumber);
        let is_left_out = self.is_lowered() && !self.terms.applies(Rule::LoweredKeepTheirNumber);
        self.fence().filter(|_| wants && !is_left_out)
    }

    /// Returns `true` if the present call owns the lock and can prove it.
    pub(crate) fn is_held(&self, now: Instant) -> bool {
        self.phase == Phase::Holding && self.held_until().is_some_and(|end| now < end)
    }

    /// Returns the end of a lease that is renewed for as long as the call may need it.
    pub(crate) fn renewed_until(&self) -> Option<Instant> {
        self.valid_until().filter(|end| self.hold_period.renewal_due(*end).is_some())
    }

    /// Returns `true` if the nodes provably keep the lock for the token, whichever call uses it.
    pub(super) fn is_proven(&self, now: Instant) -> bool {
        self.valid_until().is_some_and(|end| now < end)
    }

    /// Returns `true` if the lock was held and its lease has expired.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.phase == Phase::Holding && !self.is_held(now)
    }

    /// Returns the command that restarts the leases.
    ///
    /// A node that could not be asked when the lock was adopted may still store the old token for a while. So the
    /// adoption command is used for as long as the lock is held.
    pub(super) const fn extension_verb(&self, ttl: Duration) -> Verb {
        if self.adopts { Verb::Adopt { ttl } } else { Verb::Extend { ttl } }
    }

    /// Returns the command that restarts the leases in a periodic renewal, for whose answer no caller waits.
    pub(super) fn renewal_verb(&self, ttl: Duration) -> Verb {
        match self.extension_verb(ttl) {
            Verb::Extend { ttl } if self.contended_since.is_none() => Verb::Renew { ttl },
            verb => verb,
        }
    }

    /// Makes the token take the place of the token that another worker has left the lock with. Returns the ballot to
    /// propose together with that.
    pub(crate) const fn adopt(&mut self) -> Option<Fence> {
        self.adopts = true;
        self.fence()
    }

    /// Restarts the lease at every node that accepts further commands, counted from `now`. Returns `false` if the
    /// present call may not continue with the lock, and nothing was sent.
    pub(crate) fn extend(&mut self, fence: Option<Fence>, now: Instant, mut send: impl FnMut(Outgoing)) -> bool {
        let may_go_on = !self.has_ended(now);
        if may_go_on {
            self.ask_all(self.extension_verb(self.terms.ttl), fence, now, &mut send);
        }
        may_go_on
    }

    /// Returns the outcome of the extension that was begun at `begun`.
    pub(crate) fn extension(&self, begun: Instant) -> Extension {
        if self.is_extended(begun) {
            return Extension::Extended;
        }
        match self.verdict() {
            Verdict::Contended => Extension::NotOurs,
            _ if !self.is_awaited() => Extension::Unanswered,
            _ => Extension::Open,
        }
    }

    /// Returns `true` if enough leases are as long as one that was requested at `begun`.
    pub(crate) fn is_extended(&self, begun: Instant) -> bool {
        self.valid_until().is_some_and(|end| end >= self.terms.provable(begun))
    }
}
