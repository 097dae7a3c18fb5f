//! What is known of one node about one token.

use super::fencing_rounds::Drawn;
use super::footprint::Trace;
use super::in_flight::{InFlight, Queue};
use crate::error::NodeError;
use crate::protocol::command::Verb;
use crate::protocol::rules::{Rule, Rules};
use crate::time::clock::Instant;
use std::time::Duration;

/// How much of a claim may pass before the node is asked whether it still stands.
const OF_A_CLAIM: f64 = 0.9;
/// When to ask again a node that refused, or that could not be asked.
pub(super) const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// A node that owes this many answers about one token is asked nothing more.
const MOST_IN_FLIGHT: usize = 8;

#[derive(Debug)]
pub(crate) struct NodeStanding {
    pub(crate) vote: Vote,
    /// Until when the node provably holds the lock for us. A claim proves nothing.
    pub(super) end: Option<Instant>,
    /// The fencing number that the token has at the node, as long as the node holds the lock for us.
    pub(super) number: Option<Drawn>,
    /// Why the last command got no answer.
    pub(crate) failure: Option<NodeError>,
    pub(super) trace: Trace,
    /// Commands without an answer so far, in the order of the connection.
    pub(super) in_flight: Queue,
    /// A yield was cut off, so that the node may give the lock away at any time: it never counts again.
    pub(crate) is_tainted: bool,
    /// Somebody with a smaller token waits at this node.
    pub(super) is_beaten: bool,
    /// When to ask for the lock again.
    pub(super) recheck_at: Option<Instant>,
    /// When the present vote was last asked to become a lease.
    pub(super) extended_at: Option<Instant>,
    /// The connection on which the node was asked.
    pub(super) epoch: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// Not heard of yet.
    Open,
    /// The node holds the lock for us.
    Granted,
    /// Somebody else holds it there, or nobody does.
    NotOurs,
    /// No answer, or an error.
    Failed,
}

/// What an answer said beyond its own node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) is_any: bool,
    /// Others want the lock, too.
    pub(crate) is_contended: bool,
}

impl NodeStanding {
    pub(crate) const fn new(epoch: u64) -> Self {
        Self {
            vote: Vote::Open,
            end: None,
            number: None,
            failure: None,
            trace: Trace::None,
            in_flight: Queue::new(),
            is_tainted: false,
            is_beaten: false,
            recheck_at: None,
            extended_at: None,
            epoch,
        }
    }

    /// Waits for the answer to `sent` from now on.
    pub(crate) fn awaits(&mut self, sent: InFlight, rules: Rules) {
        match sent.verb {
            Verb::Acquire { .. } => self.recheck_at = None,
            Verb::Extend { .. } | Verb::Adopt { .. } => self.extended_at = Some(sent.sent),
            Verb::Yield { .. } => self.yields(rules),
            Verb::SetNx { .. } | Verb::Release { .. } => {}
        }
        self.in_flight.push(sent);
    }

    fn yields(&mut self, rules: Rules) {
        self.vote = Vote::Open;
        (self.is_beaten, self.extended_at, self.number) = (false, None, None);
        if rules.apply(Rule::YieldVoids) {
            self.end = None;
            self.in_flight.void();
        }
    }

    /// The node handed us the lock as a claim that lasts until `claim_end` at most.
    pub(crate) fn claimed(&mut self, now: Instant, claim_end: Instant, rules: Rules) {
        self.in_flight.overtake();
        self.trace = Trace::Queue;
        if self.is_yielding() {
            return;
        }
        self.vote = Vote::Granted;
        (self.extended_at, self.number) = (None, None);
        self.recheck_at = Some(now.after(claim_end.since(now).mul_f64(OF_A_CLAIM)));
        if !rules.apply(Rule::ClaimIsNoLease) {
            self.end = self.end.max(Some(claim_end));
        }
    }

    pub(crate) const fn beaten(&mut self) {
        self.is_beaten = true;
    }

    /// Takes note of the connection to the node. `true` when it is another one than before: whatever the node has told
    /// since may have been lost.
    pub(crate) fn connection(&mut self, epoch: u64) -> bool {
        std::mem::replace(&mut self.epoch, epoch) != epoch
    }

    /// A waiting token asks anew after its connection was cut.
    pub(crate) fn cut(&mut self, now: Instant) {
        self.vote = Vote::Open;
        (self.end, self.number, self.extended_at, self.is_beaten) = (None, None, None, false);
        self.ask_again(now);
    }

    pub(crate) fn ask_again(&mut self, now: Instant) {
        self.recheck_at = Some(now);
    }

    fn is_yielding(&self) -> bool {
        self.in_flight.any(|sent| matches!(sent.verb, Verb::Yield { .. }))
    }

    /// Whether the node takes part, if only by keeping its vote until it counts again.
    pub(crate) fn is_present(&self, now: Instant, patience: Duration) -> bool {
        matches!(self.failure, None | Some(NodeError::Abstains(_))) && !self.is_late(now, patience)
    }

    /// Whether the node owes an answer for longer than `patience`.
    pub(crate) fn is_late(&self, now: Instant, patience: Duration) -> bool {
        self.late_at(patience).is_some_and(|late| late <= now)
    }

    fn late_at(&self, patience: Duration) -> Option<Instant> {
        self.in_flight.oldest().map(|sent| sent.after(patience))
    }

    /// Whether the node holds the lock for us, as lease or as claim.
    pub(crate) fn is_ours(&self, now: Instant, patience: Duration) -> bool {
        self.vote == Vote::Granted && !self.is_tainted && !self.is_yielding() && !self.is_late(now, patience)
    }

    /// Until when the node provably holds the lock for us.
    pub(crate) fn end(&self, rules: Rules) -> Option<Instant> {
        let is_void = self.is_yielding() && rules.apply(Rule::YieldVoids);
        self.end.filter(|_| !self.is_tainted && !is_void)
    }

    pub(crate) const fn number(&self) -> Option<Drawn> {
        self.number
    }

    /// Whether an extension should turn the vote into a lease that lasts longer than until `useful_from`.
    pub(crate) fn wants_extension(&self, now: Instant, useful_from: Instant, patience: Duration) -> bool {
        let is_due = self.extended_at.is_none_or(|at| at.after(patience) <= now);
        self.vote == Vote::Granted && is_due && self.is_open() && self.end.is_none_or(|end| end < useful_from)
    }

    /// Whether an extension can make the node's lease longer. One at a time: a silent node owes no more than that.
    ///
    /// One that `adopts` can do so also where nothing is known yet: the lock may have been left there.
    pub(crate) fn is_renewable(&self, adopts: bool) -> bool {
        let is_extending = self.in_flight.any(|sent| sent.verb.is_extension());
        let may_hold = adopts || self.trace != Trace::None;
        self.vote != Vote::NotOurs && may_hold && !is_extending && self.is_open()
    }

    pub(crate) fn wants_to_yield(&self) -> bool {
        self.vote == Vote::Granted && self.is_beaten && self.is_open()
    }

    pub(crate) fn wants_to_ask(&self, now: Instant) -> bool {
        self.recheck_at.is_some_and(|at| at <= now) && self.is_open() && !self.is_asking()
    }

    fn is_asking(&self) -> bool {
        self.in_flight.any(|sent| matches!(sent.verb, Verb::Acquire { .. }))
    }

    /// Whether the node can be sent another command. Nothing may follow a yield: a script that the server had lost is
    /// sent again, and would be executed after it.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_tainted && !self.is_yielding() && self.in_flight.len() < MOST_IN_FLIGHT
    }

    /// When there is something to do at this node, if no answer and no wake-up comes before. `asks`: it would be asked
    /// for the lock when that is due.
    pub(crate) fn next_event(&self, now: Instant, patience: Duration, asks: bool) -> Option<Instant> {
        let recheck = self.recheck_at.filter(|_| asks && self.is_open() && !self.is_asking());
        let late = self.late_at(patience).filter(|late| now < *late);
        let again = self.extended_at.map(|at| at.after(patience)).filter(|at| now < *at);
        [recheck, late, again].into_iter().flatten().min()
    }

    pub(crate) fn is_awaited(&self) -> bool {
        self.in_flight.len() > 0
    }

    /// Forgets the answers that are still to come, before a release: it follows on the same connection.
    pub(crate) fn forget_answers(&mut self) {
        self.in_flight.clear();
    }

    /// The node is sent a release, and nothing more.
    pub(crate) fn forget(&mut self) {
        self.forget_answers();
        (self.vote, self.trace) = (Vote::NotOurs, Trace::None);
    }

    /// Whether the node may know the token, as holder or in its queue.
    pub(crate) fn may_know(&self) -> bool {
        self.trace != Trace::None || self.is_awaited()
    }

    /// Why the node does not count, if it does not, after it had `patience` to answer.
    pub(crate) fn reason(&self, now: Instant, patience: Duration) -> Option<NodeError> {
        let silence = || {
            if self.is_late(now, patience) { NodeError::TimedOut(patience) } else { NodeError::Unanswered }
        };
        match self.vote {
            Vote::NotOurs => Some(NodeError::Held),
            Vote::Granted if !self.is_awaited() => self.failure.clone(),
            Vote::Open | Vote::Granted | Vote::Failed => Some(self.failure.clone().unwrap_or_else(silence)),
        }
    }
}
