//! Knowledge of a candidate about one node.

use super::footprint::Footprint;
use super::hints::VoterHints;
use super::in_flight::{InFlight, Kind};
use super::queue::Queue;
use super::vote::Vote;
use crate::error::NodeError;
use crate::protocol::command::Number;
use crate::protocol::rules::{Rule, Rules};
use crate::protocol::timing::RECHECK_PER_CLAIM;
use crate::time::clock::Instant;
use std::time::Duration;

/// Number of outstanding answers about one token at which a node is asked nothing further. Smaller: a polling waiter
/// could not yield while its polls are unanswered. Larger: a silent node costs more memory.
const MOST_IN_FLIGHT: usize = 8;

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Voter {
    pub(super) vote: Vote,
    pub(super) hints: VoterHints,
    pub(super) footprint: Footprint,
    /// Unanswered commands, in the order of the connection.
    pub(super) in_flight: Queue<InFlight>,
    /// Set if a command was cut off, so that the node may execute it at any time.
    pub(super) was_cut: bool,
    /// Set if a yield was cut off, so that the node may give the lock away at any time: it never counts again.
    pub(super) is_tainted: bool,
    /// Set if a smaller token waits at this node.
    pub(super) is_beaten: bool,
    /// Time of the next question for the lock; for a holder, of a question apart from its renewals.
    pub(super) recheck_at: Option<Instant>,
    /// Time of the last question that should turn the present vote into a lease.
    pub(super) extended_at: Option<Instant>,
    /// Time of the last reply that the token has a lease.
    pub(super) heard_at: Option<Instant>,
    /// Number of the connection on which the node was asked.
    epoch: u64,
    /// Set if the connection was replaced during the first try: the node could not be asked, or forgets the question.
    pub(super) has_reconnected: bool,
    /// Set if the node may have some names of the detached token, although not all of them.
    pub(super) has_leftovers: bool,
    pub(super) rules: Rules,
}

impl Voter {
    pub(super) const fn new(epoch: u64, rules: Rules) -> Self {
        Self {
            vote: Vote::Open,
            hints: VoterHints::new(),
            footprint: Footprint::None,
            in_flight: Queue::new(),
            was_cut: false,
            is_tainted: false,
            is_beaten: false,
            recheck_at: None,
            extended_at: None,
            heard_at: None,
            epoch,
            has_reconnected: false,
            has_leftovers: false,
            rules,
        }
    }

    /// Records a command that is sent to the node.
    pub(super) fn asked(&mut self, sent: InFlight) {
        match sent.kind {
            Kind::Queue => self.recheck_at = None,
            Kind::Extension => self.extended_at = Some(sent.sent),
            Kind::Yield => self.yields(),
            Kind::Take | Kind::Release => {}
        }
        self.in_flight.push(sent);
    }

    /// Voids every grant that the node has given before the yield, answered or not.
    fn yields(&mut self) {
        if self.rules.apply(Rule::YieldVoids) {
            self.in_flight.for_each(|sent| sent.is_void = true);
            self.change_vote(Vote::Open);
        } else {
            self.change_vote(self.vote);
        }
    }

    /// Sets another vote, which no reply and no question has confirmed yet.
    pub(super) fn change_vote(&mut self, vote: Vote) {
        (self.vote, self.is_beaten, self.extended_at) = (vote, false, None);
        self.hints.set_wanted_by(None);
        self.forget_number();
    }

    /// Forgets the accepted ballot, which is useless without the vote that came with it.
    fn forget_number(&mut self) {
        if self.rules.apply(Rule::AcceptsEndWithTheVote) {
            self.hints.set_number(None);
        }
    }

    /// Records the reply to a ballot that came together with a lease. `is_continuous`: the lease before it has not
    /// ended.
    pub(super) fn numbered(&mut self, number: Option<Number>, is_continuous: bool) {
        if !is_continuous {
            self.forget_number();
        }
        // An accepted older ballot remains valid when a newer one is refused.
        if matches!(number, Some(Number::Accepted(_))) || !self.has_accepted() {
            self.hints.set_number(number.or(self.hints.number()));
        }
    }

    /// Returns `true` if the node has accepted a number for the token, and its vote is unchanged.
    pub(super) fn has_accepted(&self) -> bool {
        matches!(self.hints.number(), Some(Number::Accepted(_)))
    }

    /// Records that the node handed us the lock as a claim that lasts until `claim_end` at most, and provably until
    /// `proven`.
    pub(super) fn claimed(&mut self, now: Instant, claim_end: Instant, proven: Option<Instant>) {
        let least = self.least_in_flight();
        let proven = proven.map(|end| least.map_or(end, |least| least.min(end)));
        self.in_flight.for_each(|sent| sent.is_overtaken = true);
        self.footprint = Footprint::Queue;
        // The yield may be executed after the claim, and gives it away.
        if self.is_yielding() && (proven.is_none() || self.rules.apply(Rule::YieldVoidsProof)) {
            return;
        }
        let counted = (!self.rules.apply(Rule::ClaimIsNoLease)).then_some(claim_end);
        let (until, before) = (proven.or(counted), self.vote.lease_end());
        if until.is_some() {
            self.heard_at = Some(now);
        }
        if until.is_some() || before.is_none() {
            self.vote = Vote::Claimed { until: before.max(until) };
        }
        self.forget_number();
        self.extended_at = None;
        self.recheck_at = Some(now.after(claim_end.since(now).mul_f64(RECHECK_PER_CLAIM)));
    }

    /// Records the connection to the node. Returns `true` if it is a new one: messages of the node since the last may
    /// have been lost.
    pub(super) fn connection(&mut self, epoch: u64) -> bool {
        std::mem::replace(&mut self.epoch, epoch) != epoch
    }

    /// Makes a waiting token ask again after its connection was cut.
    pub(super) fn cut(&mut self, now: Instant) {
        self.change_vote(Vote::Open);
        self.schedule_recheck(now);
    }

    /// Voids all earlier grants of the node, answered or not. A waiting token asks again.
    pub(super) fn void(&mut self, now: Instant) {
        self.in_flight.for_each(|sent| sent.is_void = true);
        self.cut(now);
    }

    /// Voids all grants of the node for a token that decides itself when to ask: the next command may shorten the
    /// granted leases.
    pub(super) fn forget_grants(&mut self) {
        self.in_flight.for_each(|sent| sent.is_void = true);
        if self.vote.is_granted() {
            self.change_vote(Vote::Open);
        }
    }

    /// Voids all grants of the node for a first try, which regards the node as taken.
    pub(super) fn refuse(&mut self, now: Instant) {
        self.void(now);
        self.change_vote(Vote::TAKEN);
    }

    /// Records that the token holds the lock. Nodes that have voted are asked with the renewals. Other nodes are asked
    /// earlier, if they have named a time, or have a new connection.
    pub(super) fn held(&mut self, now: Instant) {
        let takes_part = self.takes_part();
        self.recheck_at = self.recheck_at.filter(|_| takes_part && !self.vote.is_granted());
        if std::mem::take(&mut self.has_reconnected) {
            self.on_holder_reconnected(now);
        }
    }

    /// Records that a holder has a connection to the node again, so that the old reason for a missing vote is over.
    pub(super) fn on_holder_reconnected(&mut self, now: Instant) {
        if !self.vote.is_granted() {
            self.hints.set_failure(None);
        }
        self.schedule_recheck(now);
    }

    /// Plans the confirmation of a claim, unless it was sent or is planned before.
    pub(super) fn confirm_at(&mut self, at: Instant) {
        if self.is_unconfirmed_claim() {
            self.recheck_at = Some(self.recheck_at.map_or(at, |planned| planned.min(at)));
        }
    }

    pub(super) const fn schedule_recheck(&mut self, now: Instant) {
        self.recheck_at = Some(now);
    }

    /// Moves the lease end of the node back by `step`.
    pub(super) fn shorten(&mut self, step: Duration) {
        if let Vote::Granted { lease_end: end } | Vote::Claimed { until: Some(end) } = &mut self.vote {
            *end = end.before(step);
        }
    }

    /// Invalidates replies that the node has sent, or will send, from before it became free, and asks it again.
    pub(super) fn on_possibly_free(&mut self, now: Instant) {
        self.in_flight.for_each(|sent| sent.is_overtaken = true);
        self.schedule_recheck(now);
    }

    pub(super) fn is_yielding(&self) -> bool {
        self.in_flight.any(|sent| sent.kind == Kind::Yield)
    }

    pub(super) fn is_extending(&self) -> bool {
        self.in_flight.any(|sent| sent.kind == Kind::Extension)
    }

    fn is_asking(&self) -> bool {
        self.in_flight.any(|sent| sent.kind == Kind::Queue)
    }

    /// Returns `true` if the node takes part, even if it only keeps its vote until it counts again.
    pub(super) fn is_present(&self, now: Instant, patience: Duration) -> bool {
        self.takes_part() && !self.is_late(now, patience)
    }

    /// Returns `true` if the last command got an answer, even if the node abstains.
    fn takes_part(&self) -> bool {
        matches!(self.hints.failure(), None | Some(NodeError::RecentlyRestarted(_)))
    }

    /// Returns `true` if no answer of the node is outstanding and its next answer may differ from a failed last one.
    pub(super) fn can_be_retried(&self) -> bool {
        let passes = |error: &NodeError| matches!(error, NodeError::Refused(_)) && error.is_transient();
        self.is_free_to_ask() && (self.takes_part() || self.hints.failure().is_some_and(passes))
    }

    /// Returns `true` if an answer of the node has been outstanding for longer than `patience`.
    pub(super) fn is_late(&self, now: Instant, patience: Duration) -> bool {
        self.late_at(patience).is_some_and(|late| late <= now)
    }

    fn late_at(&self, patience: Duration) -> Option<Instant> {
        self.in_flight.first().map(|sent| sent.sent.after(patience))
    }

    /// Returns `true` if the node holds the lock for us, as a lease or as a claim, and may be counted.
    pub(super) fn is_ours(&self, now: Instant, patience: Duration) -> bool {
        self.vote.is_granted() && !self.is_tainted && !self.is_yielding() && !self.is_late(now, patience)
    }

    /// Returns `true` if the node holds the lock for us as a claim that was not extended yet.
    pub(super) const fn is_claim(&self) -> bool {
        matches!(self.vote, Vote::Claimed { .. })
    }

    /// Returns `true` if the node holds the lock for us as a claim, and no extension was sent since.
    pub(super) const fn is_unconfirmed_claim(&self) -> bool {
        self.is_claim() && self.extended_at.is_none()
    }

    /// Returns the time until which the node provably holds the lock for us, as a lease or as a claim.
    pub(super) fn lease_end(&self) -> Option<Instant> {
        let rule = if self.is_claim() { Rule::YieldVoidsProof } else { Rule::YieldVoids };
        let is_void = self.is_yielding() && self.rules.apply(rule);
        self.vote.lease_end().filter(|_| !self.is_tainted && !is_void)
    }

    /// Returns the time from which the node can be ours, as far as it has reported.
    pub(super) fn free_from(&self, now: Instant) -> Option<Instant> {
        match self.vote {
            Vote::Granted { .. } | Vote::Claimed { .. } => Some(now),
            Vote::Taken { until } => until,
            Vote::Open | Vote::Failed => None,
        }
    }

    /// Returns the time until which the node has promised to keep the lock for us, or may promise with an outstanding
    /// answer.
    pub(super) fn promised_until(&self) -> Option<Instant> {
        let asked = self.in_flight.iter().filter(|sent| sent.kind.proves_lease()).map(|sent| sent.lease_end);
        asked.chain(self.vote.lease_end()).max()
    }

    /// Returns the earliest end that a command in flight may give to the key of the token, if it is executed only now.
    fn least_in_flight(&self) -> Option<Instant> {
        self.in_flight.iter().filter(|sent| sent.kind.proves_lease()).map(|sent| sent.lease_end).min()
    }

    /// Returns `true` if the node has confirmed the lease of the token since `fresh_from`, or no confirmation is
    /// needed.
    pub(super) fn is_fresh(&self, fresh_from: Option<Instant>) -> bool {
        fresh_from.is_none_or(|from| self.heard_at.is_some_and(|at| from <= at))
    }

    /// Returns `true` if an extension should turn the vote into a lease that lasts beyond `useful_from`, or confirm
    /// one.
    pub(super) fn wants_extension(
        &self,
        now: Instant,
        useful_from: Instant,
        fresh_from: Option<Instant>,
        patience: Duration,
    ) -> bool {
        let is_due = self.extended_at.is_none_or(|at| at.after(patience) <= now);
        let is_short = self.is_claim() || self.vote.lease_end().is_none_or(|end| end < useful_from);
        self.vote.is_granted() && is_due && (is_short || !self.is_fresh(fresh_from)) && self.is_open()
    }

    /// Returns `true` if an extension can prolong the lease of the node. Only one is in flight at a time, so that a
    /// silent node owes no further answers.
    ///
    /// A candidate that `adopts` also asks nodes of unknown state, because the lock may have been left there.
    pub(super) fn is_renewable(&self, adopts: bool) -> bool {
        let may_hold = adopts || self.footprint != Footprint::None;
        !self.vote.is_taken() && may_hold && !self.is_extending() && self.is_open()
    }

    /// Returns `true` if an extension that was sent to the node at `due` or later is over: answered, without a
    /// connection, or timed out.
    pub(super) fn has_answered_since(&self, due: Instant, now: Instant, patience: Duration) -> bool {
        if self.is_awaited() {
            return self.is_late(now, patience);
        }
        self.extended_at.is_some_and(|at| due <= at)
    }

    /// Returns `true` if a token with precedence waits at our node: a smaller one, or one that holds the lock
    /// elsewhere.
    pub(super) fn must_yield(&self) -> bool {
        self.vote.is_granted() && (self.is_beaten || self.hints.wanted_by().is_some()) && self.is_open()
    }

    /// Returns `true` if a holder should ask the node by `soon`.
    pub(super) fn is_due(&self, soon: Instant) -> bool {
        self.recheck_at.is_some_and(|at| at <= soon)
    }

    /// Returns `true` if the node can be sent another command, and no answer is outstanding.
    pub(super) fn is_free_to_ask(&self) -> bool {
        self.is_open() && !self.is_awaited()
    }

    pub(super) fn is_request_due(&self, now: Instant) -> bool {
        self.recheck_at.is_some_and(|at| at <= now) && self.is_open() && !self.is_asking()
    }

    /// Returns `true` if the node can be sent another command. Nothing may follow a yield: a script that the server had
    /// lost is sent again, and would be executed after that command.
    pub(super) fn is_open(&self) -> bool {
        !self.is_tainted && !self.is_yielding() && self.in_flight.len() < MOST_IN_FLIGHT
    }

    /// Returns the time of the next action at this node, unless an answer or a wake-up comes first. `asks`: the node
    /// would be asked for the lock when that is due.
    pub(super) fn next_event(&self, now: Instant, patience: Duration, asks: bool) -> Option<Instant> {
        let recheck = self.recheck_at.filter(|_| asks && self.is_open() && !self.is_asking());
        let late = self.late_at(patience).filter(|late| now < *late);
        let again = self.extended_at.map(|at| at.after(patience)).filter(|at| now < *at);
        [recheck, late, again].into_iter().flatten().min()
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.in_flight.first().is_some()
    }

    /// Records that the node is sent a release as the last command: it forgets the token, and its answers are useless.
    pub(super) fn released(&mut self) {
        self.in_flight.clear();
        (self.vote, self.footprint) = (Vote::TAKEN, Footprint::None);
    }

    /// Records that the node may have some, but not all, names of the token.
    pub(super) fn may_have_some(&mut self) {
        self.footprint = self.footprint.max(Footprint::Key);
    }

    /// Returns `true` if the node may know the token, as its holder or in its queue.
    pub(super) fn may_know(&self) -> bool {
        self.footprint != Footprint::None || self.is_awaited()
    }

    /// Returns the reason that the node does not count, if it does not, after it had `patience` to answer.
    pub(super) fn reason(&self, now: Instant, patience: Duration) -> Option<NodeError> {
        let silence = || {
            if self.is_late(now, patience) { NodeError::TimedOut(patience) } else { NodeError::NoReply }
        };
        match self.vote {
            // A later answer of the node is more recent than its report of another owner, and so is a missing answer.
            Vote::Taken { .. } if !self.is_late(now, patience) => Some(self.last_failure().unwrap_or(NodeError::Held)),
            Vote::Granted { .. } | Vote::Claimed { .. } if !self.is_awaited() => self.last_failure(),
            _ => Some(self.last_failure().unwrap_or_else(silence)),
        }
    }

    fn last_failure(&self) -> Option<NodeError> {
        self.hints.failure().cloned()
    }
}
