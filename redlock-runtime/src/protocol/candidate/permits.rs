//! Permits: a lock that no more than so many have at a time, where each applies its own number.
//!
//! A majority can not count. So who wants a permit stands in the *turnstile* first: an ordinary exclusive lock, which another
//! candidate has. Then it asks every node for a permit of its own and for the *roll* of those who have one:
//!
//! 1. *Enter.* A node gives the permit only while the turnstile is the token's there, whose lease that starts anew. It is a vote and a
//!    lease like any other.
//! 2. *What a roll proves.* From the moment of asking on, the turnstile is the token's at that node for its lease, so that nobody
//!    else gets a permit there. The roll counts for as long as that is certain.
//! 3. *Admission.* By `r` rolls that count, at least `q`, whoever can prove a permit stands in `r + 1 - q` of them or more: any `q` of
//!    them are of a quorum, which has a node in common with every other one that has forgotten nothing. The token is admitted when
//!    fewer than `n` others do, and its own votes are enough.
//! 4. *Afterwards* the turnstile is left, and the permit is extended like a share. A vote that is lacking is won back in the turnstile
//!    and nowhere else: what a node gives outside of it is seen by none of those that have counted. By another token than that of
//!    those who count in this process, who would not see it either. And only when a quorum has said, since that token has the
//!    turnstile, that it still has the permit: what was taken away behind its back, others have not counted.
//! 5. *What is lost stays lost.* A permit that was not proven for a moment was not counted by whoever came in that moment; no
//!    answer makes it good again. And an extension counts only where the lease has not run out that the node gave in the turnstile.
//!
//! Why no more than `n` have one at a time: let `h` be the last of them to be admitted, and `g` another one. When `h` was, `g` could
//! prove its permit at a quorum, because of 5. At each node of it that `h` has a roll of, and that has not forgotten it, the permit of
//! `g` is older than the roll: it was given in the turnstile, where `h` stood from the roll on, and never anew by an extension. So it
//! stands in so many rolls as 3 says, and `h` has counted it. A permit that `g` has won back there since the roll is of no matter: `h` was
//! admitted by then, because the turnstile was no longer its own. That holds for as many forgetful nodes as the quorums tolerate, and where
//! managers tolerate different numbers of them, for as many as both do.
//!
//! A permit may be *passed on* to a call of the same process that waits for one, without a command. For all others that is a body that
//! takes its time, so that nothing above is changed by it. It is when all of this is true:
//!
//! 1. This process stands in the turnstile, and has asked there who has a permit: since then nobody else has got one, so that all of them
//!    are *counted*, and the permit that is passed on among them. Without that one, they are fewer than the next call allows.
//! 2. Neither of the two wants its permit to stay taken for a while: such permits are a limit of how many begin in a time.
//! 3. What is true of all locks that are passed on ([`passing`](super::passing)): the same `ttl`, nobody breaks it, and one `ttl` in all; and
//!    more than a quarter of the `ttl` is left.
//! 4. Nobody elsewhere is known to wait in the turnstile, and whoever came would be heard of; or that is known for so short a time, and so
//!    few passes of the permit, that the [`LocalBudget`] is not used up. Then permits come back to the nodes until the turnstile is
//!    somebody else's, and none is passed on before it is this process's again.

use super::in_flight::{InFlight, Kind};
use super::next::Outgoing;
use super::roll::{Permit, Roll, Told};
use super::voter::Voter;
use super::{Candidate, Phase, Wanted};
use crate::lock::OwnerToken;
use crate::protocol::command::{Answer, Reply, Verb};
use crate::protocol::lease;
use crate::protocol::local_budget::LocalBudget;
use crate::protocol::node_state::MOST_TOLD;
use crate::protocol::rules::Rule;
use crate::protocol::timing::{EXPIRY_MARGIN, QUESTIONS_PER_TURN, TURN};
use crate::time::clock::Instant;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// So many times as long as otherwise are answers waited for by a token that has to give way without them.
pub(crate) const PATIENCE_BEHIND: u32 = 2;

/// How far a token has come on its way to a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entering {
    /// Answers are still to come that may decide it.
    Open,
    /// It has its permit.
    Admitted,
    /// So many others have one. The first of them loses it then, unless it extends it.
    Full { first_end: Option<Instant> },
    /// Somebody has the lock alone, or has come before to have it alone.
    Behind,
    /// Too few nodes have answered, or so late that too little is left of their leases; or the turnstile is not the token's any more.
    Unanswered,
}

/// Those who have permits, as the nodes have told the tokens that stood in the turnstile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    named: Arc<[OwnerToken]>,
    /// How many more there may be, whoever they are.
    strangers: usize,
    /// Until when nobody else comes.
    pub(crate) until: Instant,
    /// Since when others are known to wait in the turnstile.
    pub(crate) contended_since: Option<Instant>,
}

impl Counted {
    fn all(&self) -> usize {
        self.named.len() + self.strangers
    }

    /// Whether the call that is passed the permit of `token` finds fewer others than its own number of `permits`.
    fn has_room(&self, token: &OwnerToken, permits: u32, now: Instant) -> bool {
        // One that is not among them is one that the nodes have lost.
        let is_counted = self.named.contains(token) || self.strangers > 0;
        is_counted && self.all() <= permits as usize && now < self.until
    }
}

/// For how long a turnstile is the token's after each question, for permits of this `ttl`.
pub(crate) fn turn(ttl: Duration) -> Duration {
    ttl.min(TURN)
}

impl Candidate {
    /// The token wants a permit, for which it has to stand in the turnstile.
    pub(crate) fn for_permit(mut self) -> Self {
        let told = self.voters.iter().map(|_| Told::Nothing).collect();
        let confirmed = self.voters.iter().map(|_| false).collect();
        self.permit = Some(Box::new(Permit {
            turn: turn(self.terms.ttl),
            told,
            back_since: None,
            confirmed,
            beside: None,
            is_brief: false,
        }));
        self
    }

    pub(super) const fn is_permit(&self) -> bool {
        self.permit.is_some()
    }

    /// Asks every node for a permit, or for one more roll, at which `by` `stands` in the turnstile as far as that goes; who has its
    /// permit asks those whose votes it lacks. `now` must be before the first send.
    pub(crate) fn enter(
        &mut self,
        by: OwnerToken,
        now: Instant,
        stands: impl Fn(usize) -> bool,
        mut send: impl FnMut(Outgoing),
    ) {
        let Some(turn) = self.permit.as_ref().map(|permit| permit.turn) else { return };
        for index in (0..self.voters.len()).filter(|index| stands(*index)) {
            let Some(ttl) = self.asks_to_enter(index, now) else { continue };
            let verb = Verb::Enter { ttl, turn };
            let lease_end = self.counted_until(index, verb, now);
            if let Some(voter) = self.voters.get_mut(index) {
                voter.asked(InFlight::new(verb, now, lease_end));
                send(Outgoing { index, verb, fence: None, other: Some(by) });
            }
        }
    }

    /// For how long node number `index` is asked for a permit, if it is.
    fn asks_to_enter(&self, index: usize, now: Instant) -> Option<Duration> {
        let voter = self.voters.get(index).filter(|voter| voter.is_open())?;
        match (self.phase, &self.permit) {
            (Phase::Holding, _) if voter.vote.is_granted() => None,
            (Phase::Holding, _) => self.rest(voter, now),
            (_, Some(permit)) if permit.is_brief => Some(permit.turn),
            _ => Some(self.terms.ttl),
        }
    }

    /// Records that all permits are taken. From now on, nodes are asked for entries that last no longer than the turnstile, and an
    /// extension makes whole leases of these when the token is admitted. Entries that nodes have given for longer become shorter with the
    /// next question: what they have proven is forgotten here. Returns `false` if nothing has changed.
    pub(crate) fn enter_briefly(&mut self) -> bool {
        let is_new = !self.enters_briefly() && self.terms.applies(Rule::WaitersEnterBriefly);
        if let Some(permit) = self.permit.as_mut().filter(|_| is_new) {
            permit.is_brief = true;
            self.voters.iter_mut().for_each(Voter::forget_grants);
        }
        is_new
    }

    /// The token `share` is that of the same call, which has waited for exclusive locks by it: it is no permit.
    pub(crate) fn is_beside(&mut self, share: OwnerToken) {
        if let Some(permit) = &mut self.permit {
            permit.beside = Some(share);
        }
    }

    fn enters_briefly(&self) -> bool {
        self.permit.as_ref().is_some_and(|permit| permit.is_brief) && self.phase == Phase::Trying
    }

    /// Node number `index` has given the token an entry. One that was asked for briefly is a claim, which is to be extended.
    pub(super) fn note_entry(&mut self, index: usize) {
        let is_claim = self.enters_briefly();
        if let Some(voter) = self.voters.get_mut(index).filter(|_| is_claim) {
            voter.vote = voter.vote.as_claim();
        }
    }

    /// Returns `true` if enough is left of the entries to begin a body. The extensions of claims go out before it begins.
    fn is_entered(&self, now: Instant) -> bool {
        if self.enters_briefly() {
            return self.valid_until().is_some_and(|end| end >= self.terms.enterable_from(now));
        }
        self.is_won(now)
    }

    /// Asks all who have voted whether they still have the permit, which has come back to the turnstile for the votes that it lacks.
    pub(crate) fn ask_voters(&mut self, now: Instant, mut send: impl FnMut(Outgoing)) {
        if !self.terms.applies(Rule::VotersAreAskedFirst) {
            return;
        }
        if let Some(permit) = &mut self.permit {
            permit.back_since = Some(now);
            permit.confirmed.fill(false);
        }
        for index in 0..self.voters.len() {
            let voter = self.voters.get(index).filter(|voter| voter.vote.is_granted() && voter.is_open());
            if let Some(ttl) = voter.and_then(|voter| self.rest(voter, now)) {
                self.ask(index, self.extension_verb(ttl), None, now, &mut send);
            }
        }
    }

    /// Whether the token has its permit and lacks votes that a node may give: one of which it was heard since it was away, and that has
    /// named no later time.
    pub(crate) fn comes_back(&self, now: Instant) -> bool {
        let may_give = |index: usize, voter: &Voter| {
            let is_awaited = voter.recheck_at.is_some_and(|at| now < at);
            voter.may_be_asked_again() && !is_awaited && self.asks_to_enter(index, now).is_some()
        };
        self.is_permit()
            && self.is_held(now)
            && self.terms.applies(Rule::VotesAreWonBack)
            && self.voters.iter().enumerate().any(|(index, voter)| may_give(index, voter))
    }

    /// Whether a quorum has said since the token came back that it still has the permit. Silence says nothing here, and neither does a
    /// connection that breaks: whoever took the permit away there may have let another one in.
    pub(crate) fn voters_have_confirmed(&self) -> bool {
        let confirmed = |permit: &Permit| permit.confirmed.iter().filter(|is_confirmed| **is_confirmed).count();
        !self.terms.applies(Rule::VotersAreAskedFirst)
            || self.permit.as_deref().is_some_and(|permit| self.has_quorum(confirmed(permit)))
    }

    /// Whether all nodes have answered that were asked for the permit.
    pub(crate) fn has_heard_of_permit(&self) -> bool {
        !self.voters.iter().any(|voter| voter.in_flight.any(|sent| sent.kind == Kind::Take))
    }

    /// Takes note of what the oldest answer of node number `index` says of the permit that has come back, before it is taken in. One that
    /// counts for no vote confirms none: what a late question has made there may have been seen by nobody.
    pub(super) fn note_confirmation(&mut self, index: usize, answer: &Answer, counts: bool) {
        let Some(voter) = self.voters.get(index) else { return };
        let Some(sent) = voter.in_flight.first().filter(|sent| sent.kind == Kind::Extension) else { return };
        let confirms = counts && voter.vote.is_granted() && matches!(answer, Ok(Reply::Extended { .. }));
        let Some(permit) = self.permit.as_deref_mut() else { return };
        let is_new = permit.back_since.is_some_and(|since| since <= sent.sent);
        if let Some(is_confirmed) = permit.confirmed.get_mut(index).filter(|_| is_new) {
            *is_confirmed = confirms;
        }
    }

    /// The token stands in a turnstile, where permits are asked for from now on. What the nodes say counts for the whole lease of the
    /// turnstile: none of its own commands may end that earlier.
    pub(crate) const fn stand_in_turnstile(&mut self) {
        self.hold_period.stand_in_turnstile();
    }

    /// Whether permits may be asked for at node number `index`, as far as this token stands in the turnstile there: a yield that
    /// may still be executed gives it away, whatever the node says before.
    pub(crate) fn may_stand_at(&self, index: usize) -> bool {
        self.voters.get(index).is_some_and(|voter| !voter.is_tainted && !voter.is_yielding())
    }

    /// How far the token has come, when so many may have a `permits` at a time and the turnstile is its own.
    pub(crate) fn entering(&self, permits: u32, now: Instant) -> Entering {
        let is_behind = self.told().any(|told| matches!(told, Told::Behind));
        // Who would give back what it has has no use for answers that come soon after.
        let patience = self.patience_at_turnstile() * if is_behind { PATIENCE_BEHIND } else { 1 };
        let is_awaited = |voter: &Voter| voter.is_awaited() && !voter.is_late(now, patience);
        let rolls = self.rolls(now);
        let is_enough = self.has_quorum(rolls.len());
        let is_full = self.counted(&rolls) >= permits as usize;
        if is_enough && !is_full && self.is_entered(now) {
            return Entering::Admitted;
        } else if self.voters.iter().any(is_awaited) {
            return Entering::Open;
        }
        if is_enough && is_full {
            // What ended by now has been made longer, or is of an older roll than the others.
            let ends = rolls.iter().filter_map(|roll| Some(roll.first_end?.after(EXPIRY_MARGIN)));
            Entering::Full { first_end: ends.filter(|end| now < *end).min() }
        } else if is_behind && !is_enough {
            Entering::Behind
        } else {
            Entering::Unanswered
        }
    }

    /// Those who have permits now, as far as they are known for a while yet, and `token` if that has one now.
    pub(crate) fn count(&self, token: Option<OwnerToken>, now: Instant) -> Option<Counted> {
        let rolls = self.rolls(now);
        let until = rolls.iter().map(|roll| roll.counts_until).min().filter(|_| self.has_quorum(rolls.len()))?;
        let (others, strangers) = self.others(&rolls);
        let named = others.into_iter().chain(token).collect();
        Some(Counted { named, strangers, until, contended_since: None })
    }

    /// Those who have permits, with the numbers of the nodes that say so. Of many, those whose leases end first: whoever is gone extends
    /// none.
    pub(crate) fn named(&self) -> Vec<(usize, OwnerToken)> {
        let of = |(index, told): (usize, &'_ Told)| match told {
            Told::Given(roll) => roll.others.iter().take(MOST_TOLD).map(|other| (index, *other)).collect(),
            Told::Nothing | Told::Behind => Vec::new(),
        };
        self.told().enumerate().flat_map(of).collect()
    }

    /// Whether the next call in this process, which has `wanted` one of so many permits, may have that of this `token`. If so, that is
    /// counted, and whoever had it has it no more.
    pub(crate) fn pass_permit(
        &mut self,
        token: &OwnerToken,
        (wanted, permits): (Wanted, u32),
        counted: &Counted,
        budget: LocalBudget,
        now: Instant,
    ) -> bool {
        let has_room = counted.has_room(token, permits, now) || !self.terms.applies(Rule::PassedPermitsAreCounted);
        if !has_room || self.is_kept || wanted.is_kept || !self.is_passable(now) {
            return false;
        }
        let contended_since = [self.contended_since, counted.contended_since].into_iter().flatten().min();
        self.pass_while_wanted(contended_since, wanted, budget, now)
    }

    /// Since when others are known to want the same.
    pub(crate) const fn contended_since(&self) -> Option<Instant> {
        self.contended_since
    }

    /// For how long answers are waited for by whoever stands in the turnstile: if it were for longer than the turnstile is its own by
    /// each of them, one silent node would keep it from ever asking again in time.
    pub(crate) fn patience_at_turnstile(&self) -> Duration {
        self.terms.node_timeout.min(turn(self.terms.ttl) / QUESTIONS_PER_TURN)
    }

    fn told(&self) -> impl Iterator<Item = &Told> {
        self.permit.iter().flat_map(|permit| &permit.told)
    }

    /// The rolls that count at `now`, of nodes that have given their votes.
    fn rolls(&self, now: Instant) -> Vec<Roll> {
        let ends = !self.terms.applies(Rule::RollsEndWithTheTurnstile);
        let is_ours = |voter: &Voter| voter.lease_end().is_some_and(|end| now < end);
        let of = |(voter, told): (&Voter, &'_ Told)| match told {
            Told::Given(roll) if is_ours(voter) && (ends || now < roll.counts_until) => Some(roll.clone()),
            _ => None,
        };
        self.voters.iter().zip(self.told()).filter_map(of).collect()
    }

    /// How many others may be able to prove a permit, by these rolls.
    pub(super) fn counted(&self, rolls: &[Roll]) -> usize {
        if !self.terms.applies(Rule::ListsAreUnited) {
            return rolls.iter().map(|roll| roll.others.len() + roll.strangers as usize).max().unwrap_or(0);
        }
        let (others, strangers) = self.others(rolls);
        others.len() + strangers
    }

    /// Who they are, and how many more, of whom nobody knows that.
    fn others(&self, rolls: &[Roll]) -> (Vec<OwnerToken>, usize) {
        let mut times: HashMap<OwnerToken, usize> = HashMap::new();
        for other in rolls.iter().flat_map(|roll| roll.others.iter()) {
            *times.entry(*other).or_default() += 1;
        }
        // Whoever is at enough nodes is missing in fewer of these rolls than make a quorum, also when some have forgotten it.
        let least = (rolls.len() + 1).saturating_sub(self.terms.quorum.needed).max(1);
        // As many as could stand in so many rolls, whoever they are.
        let strangers = rolls.iter().map(|roll| roll.strangers as usize).sum::<usize>() / least;
        (times.into_iter().filter(|(_, times)| *times >= least).map(|(other, _)| other).collect(), strangers)
    }

    /// Takes note of what the oldest answer of node number `index` says of the others, before it is taken in.
    pub(super) fn note_roll(&mut self, index: usize, answer: &Answer) {
        let Some(sent) = self.voters.get(index).and_then(|voter| voter.in_flight.first()) else { return };
        // Who has its permit counts nobody.
        let counts = sent.kind == Kind::Take && self.phase != Phase::Holding;
        let Some(permit) = self.permit.as_mut().filter(|_| counts) else { return };
        let (begun, proven) = (sent.sent, lease::provable(permit.turn, self.terms.drift_factor));
        let Some(told) = permit.told.get_mut(index) else { return };
        *told = match answer {
            Ok(Reply::Entered { others, strangers, left }) => Told::Given(Roll {
                others: without(others, permit.beside),
                strangers: *strangers,
                counts_until: begun.after(proven),
                first_end: left.map(|left| begun.after(left)),
            }),
            Ok(Reply::Taken) => Told::Behind,
            _ => Told::Nothing,
        };
    }

    /// The turnstile may be another's at node number `index` before it was counted to be.
    pub(super) fn forget_roll(&mut self, index: usize) {
        if let Some(told) = self.permit.as_mut().and_then(|permit| permit.told.get_mut(index)) {
            *told = Told::Nothing;
        }
    }

    /// Whether the oldest answer of node number `index`, should it be a grant, counts for a permit.
    pub(super) fn counts_for_permit(&self, index: usize, now: Instant) -> bool {
        let Some(voter) = self.voters.get(index) else { return false };
        let is_lost =
            self.phase == Phase::Holding && !self.is_proven(now) && self.terms.applies(Rule::LapsedLocksStayLost);
        let is_extension = voter.in_flight.first().is_some_and(|sent| sent.kind == Kind::Extension);
        // A lease that has run out is none: by then, whoever has counted may not have found the permit at the node.
        let is_given = voter.lease_end().is_some_and(|end| now < end);
        !is_lost && (is_given || !is_extension)
    }
}

/// Returns those of `others` that are not the token `own`.
fn without(others: &Arc<[OwnerToken]>, own: Option<OwnerToken>) -> Arc<[OwnerToken]> {
    match own {
        Some(own) if others.contains(&own) => others.iter().filter(|other| **other != own).copied().collect(),
        _ => Arc::clone(others),
    }
}
