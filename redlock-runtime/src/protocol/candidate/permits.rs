//! Permits: a lock that at most `n` calls hold at a time, where each call applies its own `n`.
//!
//! A majority vote cannot enforce a count. A call for a permit therefore first acquires the *admission lock*: an ordinary
//! exclusive lock, which another candidate holds. Under the admission lock, it asks every node for a permit and for the
//! *holder list*, which is the list of present permit holders:
//!
//! 1. *Enter.* A node gives the permit only while the token owns the admission lock there, and restarts the lease of the
//!    admission lock. The permit is a vote and a lease like any other.
//! 2. *Proof of a holder list.* From the moment of asking on, the token owns the admission lock at that node for its lease, so that
//!    no other call gets a permit there. The holder list is valid while that is certain.
//! 3. *Admission.* Let `r` holder lists count, at least `q`. Every provable permit is in at least `r + 1 - q` of them. The
//!    reason: any `q` of the holder lists come from a quorum of nodes, and two quorums share a node that has forgotten
//!    nothing. So fewer than `q` holder lists lack the permit. The token is admitted when these holder lists show fewer than `n`
//!    other permits, and its own votes suffice.
//! 4. *Afterwards*, the token leaves the admission lock and extends the permit like a share. It wins missing votes back only
//!    under the admission lock, because calls that have already counted would not see a vote given outside of it. The call
//!    uses another admission lock token than the calls of this process that count, which would not see the vote either.
//!    First, a quorum must have confirmed the permit since that token owns the admission lock. Other calls have not counted
//!    a permit that was taken away in the meantime.
//! 5. *A lost permit stays lost.* If a permit was not proven for a moment, a call that entered in that moment did not
//!    count it. No later answer revives it. An extension counts only while the lease is running that the node gave
//!    under the admission lock.
//!
//! Why at most `n` calls have a permit at a time: let `h` be the last of them to be admitted, and `g` another one.
//!
//! - At that admission, `g` could prove its permit at a quorum, because of 5.
//! - Take a node of that quorum of which `h` has a holder list, and which has not forgotten the permit. There the permit of
//!   `g` is older than the holder list. It was given under the admission lock, which `h` has owned since the holder list, and an extension
//!   never gives it anew.
//! - So `g` is in as many holder lists as 3 requires, and `h` has counted it.
//! - A permit that `g` has won back there since the holder list does not matter. At that time `h` was already admitted,
//!   because it did not own the admission lock any longer.
//!
//! The argument holds for the number of forgetful nodes that the quorums tolerate. If managers tolerate different
//! numbers, it holds for the number that both tolerate.
//!
//! A permit may be *passed on* to a waiting call of the same process, without a command. For all other calls, this is
//! one body that takes longer, so the argument above is unchanged. A permit is passed on if all of this is true:
//!
//! 1. This process owns the admission lock, and has asked for the permit holders under it. No other call has got a permit
//!    since, so all holders are *counted*, including the permit that is passed on. Without that one, they are fewer
//!    than the limit of the next call.
//! 2. Neither of the two calls keeps its permit taken for a minimum time: such permits limit the number of starts in a
//!    period.
//! 3. The conditions for all passed locks hold ([`passing`](super::passing)): equal `ttl`, no break in progress, and
//!    one `ttl` in total. More than a quarter of the `ttl` is left.
//! 4. No other process is known to wait for the admission lock, and a new waiter would be noticed. Or one is known to wait,
//!    and the [`LocalBudget`] for its waiting time and the number of passes is not used up. After that, permits go back
//!    to the nodes until another process owns the admission lock, and none is passed on before this process owns it again.

use super::holder_list::{HolderList, Permit, PermitReply};
use super::in_flight::{InFlight, Kind};
use super::next::Outgoing;
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

/// Factor on the time to wait for answers, for a token that would otherwise have to give way.
pub(crate) const PATIENCE_BEHIND: u32 = 2;

/// Progress of a token towards a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entering {
    /// Outstanding answers may still decide.
    Open,
    /// Token has its permit.
    Admitted,
    /// All permits are taken. The first of them ends at `first_end`, unless it is extended.
    Full { first_end: Option<Instant> },
    /// Writer holds the lock, or waits for it with an earlier token.
    Behind,
    /// Too few nodes have answered, or so late that their leases are nearly over; or the token does not own the
    /// admission lock any longer.
    Unanswered,
}

/// Permit holders, as the nodes have reported them to the tokens that owned the admission lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    named: Arc<[OwnerToken]>,
    /// Number of further permits under unknown names.
    strangers: usize,
    /// Time until which no other call gets a permit.
    pub(crate) until: Instant,
    /// Time since which other processes are known to wait for the admission lock.
    pub(crate) contended_since: Option<Instant>,
}

impl Counted {
    fn all(&self) -> usize {
        self.named.len() + self.strangers
    }

    /// Returns `true` if a call that takes over the permit of `token` finds fewer others than its own limit `permits`.
    fn has_room(&self, token: &OwnerToken, permits: u32, now: Instant) -> bool {
        // The nodes have lost a permit that is not in the list.
        let is_counted = self.named.contains(token) || self.strangers > 0;
        is_counted && self.all() <= permits as usize && now < self.until
    }
}

/// Returns the time for which a token owns the admission lock after each question, for permits of this `ttl`.
pub(crate) fn turn(ttl: Duration) -> Duration {
    ttl.min(TURN)
}

impl Candidate {
    /// Records that the token wants a permit, for which its call must own the admission lock.
    pub(crate) fn for_permit(mut self) -> Self {
        let told = self.voters.iter().map(|_| PermitReply::Nothing).collect();
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

    /// Asks every node for a permit, or for another holder list, under the admission lock token `by`. A node is asked only if
    /// `stands` returns `true`: `by` may own the admission lock there. A permit holder asks the nodes whose votes it lacks.
    /// `now` must be before the first send.
    pub(crate) fn enter(
        &mut self,
        by: OwnerToken,
        now: Instant,
        stands: impl Fn(usize) -> bool,
        mut send: impl FnMut(Outgoing),
    ) {
        let Some(turn) = self.permit.as_ref().map(|permit| permit.turn) else { return };
        for index in (0..self.voters.len()).filter(|index| stands(*index)) {
            let Some(ttl) = self.enter_duration(index, now) else { continue };
            let verb = Verb::Enter { ttl, turn };
            let lease_end = self.counted_until(index, verb, now);
            if let Some(voter) = self.voters.get_mut(index) {
                voter.asked(InFlight::new(verb, now, lease_end));
                send(Outgoing { index, verb, fence: None, other: Some(by) });
            }
        }
    }

    /// Returns the duration for which node number `index` is asked for a permit, if it is asked.
    fn enter_duration(&self, index: usize, now: Instant) -> Option<Duration> {
        let voter = self.voters.get(index).filter(|voter| voter.is_open())?;
        match (self.phase, &self.permit) {
            (Phase::Holding, _) if voter.vote.is_granted() => None,
            (Phase::Holding, _) => self.rest(voter, now),
            (_, Some(permit)) if permit.is_brief => Some(permit.turn),
            _ => Some(self.terms.ttl),
        }
    }

    /// Records that all permits are taken. From now on, nodes are asked for entries that last no longer than the
    /// admission lock. An extension turns these into whole leases when the token is admitted. Longer entries become shorter
    /// with the next question, so their proofs are forgotten here. Returns `false` if nothing has changed.
    pub(crate) fn enter_briefly(&mut self) -> bool {
        let is_new = !self.enters_briefly() && self.terms.applies(Rule::WaitersEnterBriefly);
        if let Some(permit) = self.permit.as_mut().filter(|_| is_new) {
            permit.is_brief = true;
            self.voters.iter_mut().for_each(Voter::forget_grants);
        }
        is_new
    }

    /// Records that the token `share` belongs to the same call, which has waited for exclusive locks with it. It is not
    /// a permit.
    pub(crate) fn set_share_beside(&mut self, share: OwnerToken) {
        if let Some(permit) = &mut self.permit {
            permit.beside = Some(share);
        }
    }

    fn enters_briefly(&self) -> bool {
        self.permit.as_ref().is_some_and(|permit| permit.is_brief) && self.phase == Phase::Trying
    }

    /// Records that node number `index` has given the token an entry. A brief entry is a claim, which must be extended.
    pub(super) fn note_entry(&mut self, index: usize) {
        let is_claim = self.enters_briefly();
        if let Some(voter) = self.voters.get_mut(index).filter(|_| is_claim) {
            voter.vote = voter.vote.as_claim();
        }
    }

    /// Returns `true` if enough is left of the entries to begin a body. The extensions of claims are sent before it
    /// begins.
    fn is_entered(&self, now: Instant) -> bool {
        if self.enters_briefly() {
            return self.valid_until().is_some_and(|end| end >= self.terms.enterable_from(now));
        }
        self.is_won(now)
    }

    /// Asks all nodes that have voted to confirm the permit, which has returned to the admission lock for its missing votes.
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

    /// Returns `true` if the token has its permit and lacks a vote that a node may give. The node must have answered
    /// since it was away, and must not have named a later time.
    pub(crate) fn comes_back(&self, now: Instant) -> bool {
        let may_give = |index: usize, voter: &Voter| {
            let is_awaited = voter.recheck_at.is_some_and(|at| now < at);
            voter.can_be_retried() && !is_awaited && self.enter_duration(index, now).is_some()
        };
        self.is_permit()
            && self.is_held(now)
            && self.terms.applies(Rule::VotesAreWonBack)
            && self.voters.iter().enumerate().any(|(index, voter)| may_give(index, voter))
    }

    /// Returns `true` if a quorum has confirmed the permit since the token returned to the admission lock. Silence and
    /// broken connections are not confirmations: a process that removed the permit there may have let another call in.
    pub(crate) fn is_confirmed_by_quorum(&self) -> bool {
        let confirmed = |permit: &Permit| permit.confirmed.iter().filter(|is_confirmed| **is_confirmed).count();
        !self.terms.applies(Rule::VotersAreAskedFirst)
            || self.permit.as_deref().is_some_and(|permit| self.has_quorum(confirmed(permit)))
    }

    /// Returns `true` if all nodes have answered that were asked for the permit.
    pub(crate) fn has_all_permit_replies(&self) -> bool {
        !self.voters.iter().any(|voter| voter.in_flight.any(|sent| sent.kind == Kind::Take))
    }

    /// Records a confirmation of the returned permit from the oldest answer of node number `index`, before the answer
    /// is processed. An answer that is not a vote confirms nothing: other calls may not have seen the entry that a late question has made.
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

    /// Records that the token owns an admission lock, under which permits are requested from now on. The replies rely on the
    /// whole lease of the admission lock, so no command of the token may end that lease earlier.
    pub(crate) const fn mark_as_admission(&mut self) {
        self.hold_period.mark_as_admission();
    }

    /// Returns `true` if permits may be requested at node number `index`, as far as this admission lock token is concerned.
    /// A yield that may still be executed gives the admission lock away, whatever the node replies before.
    pub(crate) fn can_request_permits_at(&self, index: usize) -> bool {
        self.voters.get(index).is_some_and(|voter| !voter.is_tainted && !voter.is_yielding())
    }

    /// Returns the progress of the token, if its call admits `permits` at a time and owns the admission lock.
    pub(crate) fn entering(&self, permits: u32, now: Instant) -> Entering {
        let is_behind = self.told().any(|told| matches!(told, PermitReply::Behind));
        // A token that would give its votes back waits longer for answers that may arrive soon.
        let patience = self.patience_at_admission() * if is_behind { PATIENCE_BEHIND } else { 1 };
        let is_awaited = |voter: &Voter| voter.is_awaited() && !voter.is_late(now, patience);
        let holder_lists = self.holder_lists(now);
        let is_enough = self.has_quorum(holder_lists.len());
        let is_full = self.counted(&holder_lists) >= permits as usize;
        if is_enough && !is_full && self.is_entered(now) {
            return Entering::Admitted;
        } else if self.voters.iter().any(is_awaited) {
            return Entering::Open;
        }
        if is_enough && is_full {
            // A lease that should be over by now was extended, or belongs to an older holder list than the others.
            let ends = holder_lists.iter().filter_map(|holder_list| Some(holder_list.first_end?.after(EXPIRY_MARGIN)));
            Entering::Full { first_end: ends.filter(|end| now < *end).min() }
        } else if is_behind && !is_enough {
            Entering::Behind
        } else {
            Entering::Unanswered
        }
    }

    /// Returns the present permit holders, if they are known for a while longer, including `token` if that is a holder now.
    pub(crate) fn count(&self, token: Option<OwnerToken>, now: Instant) -> Option<Counted> {
        let holder_lists = self.holder_lists(now);
        let until = holder_lists
            .iter()
            .map(|holder_list| holder_list.counts_until)
            .min()
            .filter(|_| self.has_quorum(holder_lists.len()))?;
        let (others, strangers) = self.others(&holder_lists);
        let named = others.into_iter().chain(token).collect();
        Some(Counted { named, strangers, until, contended_since: None })
    }

    /// Returns the permit holders, with the numbers of the nodes that reported them. Of many holders, it returns those
    /// whose leases end first, because an abandoned permit is not extended.
    pub(crate) fn named(&self) -> Vec<(usize, OwnerToken)> {
        let of = |(index, told): (usize, &'_ PermitReply)| match told {
            PermitReply::Given(holder_list) => {
                holder_list.others.iter().take(MOST_TOLD).map(|other| (index, *other)).collect()
            }
            PermitReply::Nothing | PermitReply::Behind => Vec::new(),
        };
        self.told().enumerate().flat_map(of).collect()
    }

    /// Tries to hand the permit of `token` to the next call of this process, which wants one of `permits`. On success,
    /// returns `true`, counts the pass, and ends the ownership of the previous call.
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

    /// Returns the time since which other tokens are known to want the lock.
    pub(crate) const fn contended_since(&self) -> Option<Instant> {
        self.contended_since
    }

    /// Returns the time to wait for answers under the admission lock. If it were longer than the admission lock's lease after
    /// each answer, one silent node would prevent every further question in time.
    pub(crate) fn patience_at_admission(&self) -> Duration {
        self.terms.node_timeout.min(turn(self.terms.ttl) / QUESTIONS_PER_TURN)
    }

    fn told(&self) -> impl Iterator<Item = &PermitReply> {
        self.permit.iter().flat_map(|permit| &permit.told)
    }

    /// Returns the holder lists that count at `now`, of nodes that have given their votes.
    fn holder_lists(&self, now: Instant) -> Vec<HolderList> {
        let ends = !self.terms.applies(Rule::ListsEndWithTheAdmissionLock);
        let is_ours = |voter: &Voter| voter.lease_end().is_some_and(|end| now < end);
        let of = |(voter, told): (&Voter, &'_ PermitReply)| match told {
            PermitReply::Given(holder_list) if is_ours(voter) && (ends || now < holder_list.counts_until) => {
                Some(holder_list.clone())
            }
            _ => None,
        };
        self.voters.iter().zip(self.told()).filter_map(of).collect()
    }

    /// Returns the number of other tokens that may be able to prove a permit, according to these holder lists.
    pub(super) fn counted(&self, holder_lists: &[HolderList]) -> usize {
        if !self.terms.applies(Rule::ListsAreUnited) {
            return holder_lists
                .iter()
                .map(|holder_list| holder_list.others.len() + holder_list.strangers as usize)
                .max()
                .unwrap_or(0);
        }
        let (others, strangers) = self.others(holder_lists);
        others.len() + strangers
    }

    /// Returns those tokens, and the number of further permits under unknown names.
    fn others(&self, holder_lists: &[HolderList]) -> (Vec<OwnerToken>, usize) {
        let mut times: HashMap<OwnerToken, usize> = HashMap::new();
        for other in holder_lists.iter().flat_map(|holder_list| holder_list.others.iter()) {
            *times.entry(*other).or_default() += 1;
        }
        // A permit at enough nodes is missing in fewer of these holder lists than make a quorum, even if some nodes have
        // forgotten it.
        let least = (holder_lists.len() + 1).saturating_sub(self.terms.quorum.needed).max(1);
        // Largest number of unknown permits that can appear in this many holder lists.
        let strangers = holder_lists.iter().map(|holder_list| holder_list.strangers as usize).sum::<usize>() / least;
        (times.into_iter().filter(|(_, times)| *times >= least).map(|(other, _)| other).collect(), strangers)
    }

    /// Records the permit holders from the oldest answer of node number `index`, before the answer is processed.
    pub(super) fn note_holder_list(&mut self, index: usize, answer: &Answer) {
        let Some(sent) = self.voters.get(index).and_then(|voter| voter.in_flight.first()) else { return };
        // A permit holder ignores the holder lists.
        let counts = sent.kind == Kind::Take && self.phase != Phase::Holding;
        let Some(permit) = self.permit.as_mut().filter(|_| counts) else { return };
        let (begun, proven) = (sent.sent, lease::provable(permit.turn, self.terms.drift_factor));
        let Some(told) = permit.told.get_mut(index) else { return };
        *told = match answer {
            Ok(Reply::Entered { others, strangers, left }) => PermitReply::Given(HolderList {
                others: without(others, permit.beside),
                strangers: *strangers,
                counts_until: begun.after(proven),
                first_end: left.map(|left| begun.after(left)),
            }),
            Ok(Reply::Taken) => PermitReply::Behind,
            _ => PermitReply::Nothing,
        };
    }

    /// Forgets the holder list of node number `index`, because another token may own the admission lock there earlier than
    /// calculated.
    pub(super) fn forget_holder_list(&mut self, index: usize) {
        if let Some(told) = self.permit.as_mut().and_then(|permit| permit.told.get_mut(index)) {
            *told = PermitReply::Nothing;
        }
    }

    /// Returns `true` if the oldest answer of node number `index`, if it is a grant, is valid for a permit.
    pub(super) fn counts_for_permit(&self, index: usize, now: Instant) -> bool {
        let Some(voter) = self.voters.get(index) else { return false };
        let is_lost =
            self.phase == Phase::Holding && !self.is_proven(now) && self.terms.applies(Rule::LapsedLocksStayLost);
        let is_extension = voter.in_flight.first().is_some_and(|sent| sent.kind == Kind::Extension);
        // An expired lease proves nothing: a call that has counted since may not have found the permit at the node.
        let is_given = voter.lease_end().is_some_and(|end| now < end);
        !is_lost && (is_given || !is_extension)
    }
}

/// Returns `others` without the token `own`.
fn without(others: &Arc<[OwnerToken]>, own: Option<OwnerToken>) -> Arc<[OwnerToken]> {
    match own {
        Some(own) if others.contains(&own) => others.iter().filter(|other| **other != own).copied().collect(),
        _ => Arc::clone(others),
    }
}
