//! When the leases of a held lock are started anew, and what an extension has brought.
//!
//! 1. A renewal is due when a third of what was left of the leases at the last one is over
//!    ([`HoldPeriod::renewal_due`](super::hold_period::HoldPeriod)), unless the call needs them no longer.
//! 2. Whoever looks after many locks takes those together that are due soon; how soon is up to it.
//! 3. A renewal asks every node that owes no extension, and proposes no fencing number. Nodes that have no vote for the token
//!    are asked for it ([`winning_back`](super::winning_back)).
//! 4. A lock that is over is due as well, as long as somebody wants to know.
//! 5. While the lock stands on claims, the answers to their extensions are taken in well before it would be over: later, they
//!    could not make it good.
//! 6. An extension of a permit counts only if it is taken in before the lease of its node ends. So a permit is looked at just before
//!    that, as long as a node owes the answer.

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

/// What whoever looks after a lock has to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing to look after: it is not held.
    Nothing,
    /// It has to be renewed, or its loss be made known.
    Due,
    /// It has to be renewed then, and may be a little before, together with others.
    DueAt(Instant),
    /// There is nothing to do before.
    Later(Instant),
}

/// What has become of an extension that somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    /// Answers are still to come that may decide it.
    Open,
    Extended,
    /// The lock is not ours any more, or not for the present call.
    NotOurs,
    /// Too few nodes have answered.
    Unanswered,
}

impl Candidate {
    /// What there is to do at `now`, together with all that is due until `soon`. `is_watched`: somebody wants to know when
    /// the lock is lost.
    pub(crate) fn look(&self, now: Instant, soon: Instant, is_watched: bool) -> Look {
        if self.phase != Phase::Holding {
            return Look::Nothing;
        }
        let valid_until = self.valid_until();
        let held_until = valid_until.map(|end| self.capped(end)).filter(|end| now < *end);
        let Some((valid_until, end)) = valid_until.zip(held_until) else {
            return if is_watched { Look::Due } else { Look::Nothing };
        };
        if self.is_in_doubt(soon) {
            // Whoever breaks the lock waits for what the answers say.
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

    /// When to look at the lock again that is renewed at `now` with what is due until `soon`, should those who have voted grant new
    /// leases; `None` when not all are asked for one, or it is not to be expected. Whoever sent them takes in the answers, and sees
    /// whether it has to be sooner.
    pub(crate) fn look_after_renewal(&self, now: Instant, soon: Instant) -> Option<Instant> {
        let is_held = self.is_held(now) && self.stands_on_claims_until(now).is_none();
        let is_plain = is_held && !self.is_in_doubt(now) && self.round_due(soon) == Round::All;
        let expected = self.terms.provable(now);
        let due = self.hold_period.next_renewal(now, self.valid_until()?, expected).filter(|_| is_plain)?;
        Some(due.min(self.capped(expected)))
    }

    /// When the answers to the extensions of claims are to be taken in, if the lock stands on claims.
    pub(super) fn answers_due(&self, now: Instant) -> Option<Instant> {
        let left = self.stands_on_claims_until(now)?.since(now);
        Some(now.after(left / LOOKS_PER_CLAIM))
    }

    /// Returns when to take in the answers to extensions of a permit that nodes still owe: just before the first lease of these nodes
    /// ends. An extension that is taken in after that counts for nothing (see [`permits`](super::permits), argument 5), although the
    /// node has kept the permit, and one more node that fails would end it.
    fn late_extensions_due(&self, now: Instant) -> Option<Instant> {
        if !self.is_permit() {
            return None;
        }
        let margin = self.terms.node_timeout.min(self.terms.ttl / LAST_LOOK_PER_TTL);
        let ends = self.voters.iter().filter(|voter| voter.is_extending()).filter_map(Voter::lease_end);
        ends.map(|end| end.before(margin)).filter(|due| now < *due).min()
    }

    /// When every node is to be asked next: for a new lease, or for the vote that is lacking.
    fn renewal_due(&self, valid_until: Instant) -> Option<Instant> {
        self.hold_period.renewal_due(valid_until).or_else(|| self.asks_for_votes_at(valid_until))
    }

    /// Which nodes are to be asked together by `soon`.
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

    /// Whether several nodes are to be asked by `soon`, because of the age of the leases and not for a reason of their own.
    pub(crate) fn is_round_due(&self, soon: Instant) -> bool {
        self.round_due(soon) != Round::None
    }

    /// Asks for new leases and for votes that are lacking, as far as that is due by `soon`. `false` when the lock is lost,
    /// which must be made known.
    pub(crate) fn renew(&mut self, now: Instant, soon: Instant, mut send: impl FnMut(Outgoing)) -> bool {
        let is_held = self.is_held(now);
        if is_held && self.terms.applies(Rule::LeasesAreRenewed) {
            let round = self.round_due(soon);
            if let Some(valid_until) = self.valid_until().filter(|_| round != Round::None) {
                self.hold_period.renewed(now, valid_until);
            }
            self.ask_voters_first(round, soon, now);
            for index in 0..self.voters.len() {
                if let Some(verb) = self.holder_asks(index, round, soon, now) {
                    let fence = self.fence_of_holder(index, verb);
                    self.ask(index, verb, fence, now, &mut send);
                } else if self.is_not_worth_asking(index, now)
                    && let Some(voter) = self.voters.get_mut(index)
                {
                    voter.recheck_at = voter.recheck_at.filter(|at| *at > soon);
                }
            }
        }
        is_held
    }

    /// Whether node number `index` could be asked at `now`, and there was no reason to.
    fn is_not_worth_asking(&self, index: usize, now: Instant) -> bool {
        let is_idle =
            |voter: &&Voter| voter.is_free_to_ask() && (voter.vote.is_granted() || !self.waits_for_others(voter, now));
        self.voters.get(index).is_some_and(|voter| is_idle(&voter))
    }

    /// What is asked of node number `index` together with what a holder asks. A vote that is won back comes with the number of the
    /// token, and so does one of a lock that was left with another token, which the node could not be asked for before; an extension
    /// leaves it what it is.
    pub(super) fn fence_of_holder(&self, index: usize, verb: Verb) -> Option<Fence> {
        let is_lacking = || self.voters.get(index).is_some_and(|voter| !voter.vote.is_granted());
        let is_new = match verb {
            Verb::Acquire { .. } => true,
            Verb::Adopt { .. } => is_lacking(),
            _ => false,
        };
        let wants = is_new && self.terms.applies(Rule::WonVotesCarryTheNumber);
        let is_left_out = self.is_lowered() && !self.terms.applies(Rule::LoweredKeepTheirNumber);
        self.fence().filter(|_| wants && !is_left_out)
    }

    /// Whether the present call has the lock and can prove it.
    pub(crate) fn is_held(&self, now: Instant) -> bool {
        self.phase == Phase::Holding && self.held_until().is_some_and(|end| now < end)
    }

    /// Until when a lease lasts that is renewed, for as long as the call may need it.
    pub(crate) fn renewed_until(&self) -> Option<Instant> {
        self.valid_until().filter(|end| self.hold_period.renewal_due(*end).is_some())
    }

    /// Whether the nodes provably keep the lock for the token, whoever has it.
    pub(super) fn is_proven(&self, now: Instant) -> bool {
        self.valid_until().is_some_and(|end| now < end)
    }

    /// Whether the lock was held and its lease has run out.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.phase == Phase::Holding && !self.is_held(now)
    }

    /// The command that starts the leases anew.
    ///
    /// A node that could not be asked when the lock was adopted may have it under the other token for a while yet: so the
    /// adoption goes on for as long as the lock is held.
    pub(super) const fn extension_verb(&self, ttl: Duration) -> Verb {
        if self.adopts { Verb::Adopt { ttl } } else { Verb::Extend { ttl } }
    }

    /// The command that does so when it is time for that, and nobody waits for the answer.
    pub(super) fn renewal_verb(&self, ttl: Duration) -> Verb {
        match self.extension_verb(ttl) {
            Verb::Extend { ttl } if self.contended_since.is_none() => Verb::Renew { ttl },
            verb => verb,
        }
    }

    /// From now on, the token takes the place of the one that another worker has left the lock with. Returns what is asked
    /// of the nodes together with that.
    pub(crate) const fn adopt(&mut self) -> Option<Fence> {
        self.adopts = true;
        self.fence()
    }

    /// Starts the lease anew at every node that takes more commands, counted from `now`. `false` when the present call may
    /// not go on with the lock, and nothing was sent.
    pub(crate) fn extend(&mut self, fence: Option<Fence>, now: Instant, mut send: impl FnMut(Outgoing)) -> bool {
        let may_go_on = !self.has_ended(now);
        if may_go_on {
            self.ask_all(self.extension_verb(self.terms.ttl), fence, now, &mut send);
        }
        may_go_on
    }

    /// What has become of the extension that was begun at `begun`.
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

    /// Whether enough leases are as long as one that was asked for at `begun`.
    pub(crate) fn is_extended(&self, begun: Instant) -> bool {
        self.valid_until().is_some_and(|end| end >= self.terms.provable(begun))
    }
}
