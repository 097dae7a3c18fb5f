//! What is known of one node about one token.

use super::in_flight::{InFlight, Queue};
use super::numbers::Drawn;
use super::trace::Trace;
use crate::clock::{Clock, Instant};
use crate::error::NodeError;
use crate::node::{Answer, Reply, Verb};
use crate::rules::{Rule, Rules};
use std::task::{Context, Poll};
use std::time::Duration;

/// The holder's key has expired for certain when it is this old: Redis and our timers count whole milliseconds.
const EXPIRY_MARGIN: Duration = Duration::from_millis(5);
/// When a holder has crashed, its successors ask one after the other, so that the first one finds no crowd.
const PER_RANK: Duration = Duration::from_millis(30);
const MOST_RANKS: u32 = 10;
/// How much of a claim may pass before the node is asked whether it still stands.
const OF_A_CLAIM: f64 = 0.9;
/// When to ask again a node that refused, or that could not be asked.
const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// A node that owes this many answers about one token is asked nothing more.
const MOST_IN_FLIGHT: usize = 8;

#[derive(Debug)]
pub(super) struct NodeStanding {
    pub(super) vote: Vote,
    /// Until when the node provably holds the lock for us. A claim proves nothing.
    end: Option<Instant>,
    /// The fencing number that the token has at the node, as long as the node holds the lock for us.
    number: Option<Drawn>,
    /// Why the last command got no answer.
    pub(super) failure: Option<NodeError>,
    trace: Trace,
    /// Commands without an answer so far, in the order of the connection.
    in_flight: Queue,
    /// A yield was cut off, so that the node may give the lock away at any time: it never counts again.
    pub(super) is_tainted: bool,
    /// Somebody with a smaller token waits at this node.
    is_beaten: bool,
    /// When to ask for the lock again.
    recheck_at: Option<Instant>,
    /// When the present vote was last asked to become a lease.
    extended_at: Option<Instant>,
    /// The connection on which the node was asked.
    epoch: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
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
pub(super) struct News {
    pub(super) is_any: bool,
    /// Others want the lock, too.
    pub(super) is_contended: bool,
}

impl NodeStanding {
    pub(super) const fn new(epoch: u64) -> Self {
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
    pub(super) fn awaits(&mut self, sent: InFlight, rules: Rules) {
        match sent.verb {
            Verb::Acquire { .. } => self.recheck_at = None,
            Verb::Extend { .. } => self.extended_at = Some(sent.sent),
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

    /// Takes in the answers that are here.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, clock: Clock, rules: Rules) -> News {
        let mut news = News::default();
        while let Poll::Ready((sent, answer)) = self.in_flight.poll_answer(cx) {
            news.is_any = true;
            news.is_contended |= self.take_in(&sent, answer, clock.now(), rules);
        }
        news
    }

    /// The clock of the server went ahead by at most `step`: the leases that it gave before end so much earlier.
    ///
    /// Those are the ones whose answers are here. Those that are still to come were given after the step, because the
    /// answers of a connection come in the order of its commands.
    pub(super) fn shorten(&mut self, step: Duration, now: Instant, rules: Rules) -> News {
        let mut news = News::default();
        while let Some((sent, answer)) = self.in_flight.try_answer() {
            news.is_any = true;
            news.is_contended |= self.take_in(&sent, answer, now, rules);
        }
        self.end = self.end.map(|end| end.before(step));
        news
    }

    /// Whether others want the lock, too.
    fn take_in(&mut self, sent: &InFlight, answer: Answer, now: Instant, rules: Rules) -> bool {
        self.failure = None;
        let reply = match answer {
            Ok(reply) => reply,
            Err(error) => {
                self.failed(sent, error, now, rules);
                return false;
            }
        };
        match reply {
            Reply::Granted { smaller, number } => {
                self.is_beaten |= smaller;
                self.granted(sent, number, now, rules);
            }
            Reply::Extended { number, .. } => self.granted(sent, number, now, rules),
            Reply::Kept => (self.vote, self.is_beaten) = (Vote::Granted, false),
            Reply::Queued { left, rank } => {
                self.trace = Trace::Queue;
                // A claim that came first may be newer than this answer. To find out is what extensions are for.
                if !sent.is_overtaken {
                    self.not_ours(expiry(left, now, rules).map(|at| at.after(PER_RANK * rank.min(MOST_RANKS))));
                }
            }
            Reply::Yielded { left } => {
                self.trace = Trace::Queue;
                self.not_ours(if sent.is_overtaken { Some(now) } else { expiry(left, now, rules) });
            }
            Reply::Held | Reply::NotOwner => {
                self.trace = if self.trace == Trace::Queue { Trace::Queue } else { Trace::None };
                // The first try may be answered when the token has gone on to wait, and is to be asked for a place.
                self.not_ours(if reply == Reply::NotOwner { Some(now) } else { self.recheck_at });
            }
            Reply::Released => {}
        }
        is_contended(reply)
    }

    fn granted(&mut self, sent: &InFlight, number: Option<u64>, now: Instant, rules: Rules) {
        self.trace = self.trace.max(Trace::Key);
        if sent.is_void {
            return;
        }
        let end = if rules.apply(Rule::ValidityFromTheSend) { sent.end } else { now.after(sent.end.since(sent.sent)) };
        self.vote = Vote::Granted;
        self.end = self.end.max(Some(end));
        self.number = number.map(|number| Drawn { round: sent.round, number }).or(self.number);
    }

    fn not_ours(&mut self, recheck_at: Option<Instant>) {
        self.vote = Vote::NotOurs;
        (self.end, self.number, self.extended_at, self.is_beaten) = (None, None, None, false);
        self.recheck_at = recheck_at;
    }

    fn failed(&mut self, sent: &InFlight, error: NodeError, now: Instant, rules: Rules) {
        let is_unknown =
            matches!(error, NodeError::Disconnected | NodeError::TimedOut(_) | NodeError::Unintelligible(_));
        if is_unknown && matches!(sent.verb, Verb::Yield { .. }) && rules.apply(Rule::CutYieldTaints) {
            self.is_tainted = true;
        }
        let abstains = if let NodeError::Abstains(left) = error { Some(left) } else { None };
        // Silence changes nothing about a vote that was given. But a claim at a node that abstains is none.
        if self.vote == Vote::Open || (abstains.is_some() && self.end.is_none()) {
            self.vote = Vote::Failed;
        }
        if is_unknown || abstains.is_some() {
            self.trace = self.trace.max(Trace::of(sent.verb));
        }
        self.recheck_at = Some(now.after(abstains.unwrap_or(AFTER_FAILURE)));
        self.failure = Some(error);
    }

    /// The node handed us the lock as a claim that lasts until `claim_end` at most.
    pub(super) fn claimed(&mut self, now: Instant, claim_end: Instant, rules: Rules) {
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

    pub(super) const fn beaten(&mut self) {
        self.is_beaten = true;
    }

    /// Takes note of the connection to the node. `true` when it is another one than before: whatever the node has told
    /// since may have been lost.
    pub(super) fn connection(&mut self, epoch: u64) -> bool {
        std::mem::replace(&mut self.epoch, epoch) != epoch
    }

    /// A waiting token asks anew after its connection was cut.
    pub(super) fn cut(&mut self, now: Instant) {
        self.vote = Vote::Open;
        (self.end, self.number, self.extended_at, self.is_beaten) = (None, None, None, false);
        self.ask_again(now);
    }

    pub(super) fn ask_again(&mut self, now: Instant) {
        self.recheck_at = Some(now);
    }

    fn is_yielding(&self) -> bool {
        self.in_flight.any(|sent| matches!(sent.verb, Verb::Yield { .. }))
    }

    /// Whether the node takes part, if only by keeping its vote until it counts again.
    pub(super) fn is_present(&self, now: Instant, patience: Duration) -> bool {
        matches!(self.failure, None | Some(NodeError::Abstains(_))) && !self.is_late(now, patience)
    }

    /// Whether the node owes an answer for longer than `patience`.
    pub(super) fn is_late(&self, now: Instant, patience: Duration) -> bool {
        self.late_at(patience).is_some_and(|late| late <= now)
    }

    fn late_at(&self, patience: Duration) -> Option<Instant> {
        self.in_flight.oldest().map(|sent| sent.after(patience))
    }

    /// Whether the node holds the lock for us, as lease or as claim.
    pub(super) fn is_ours(&self, now: Instant, patience: Duration) -> bool {
        self.vote == Vote::Granted && !self.is_tainted && !self.is_yielding() && !self.is_late(now, patience)
    }

    /// Until when the node provably holds the lock for us.
    pub(super) fn end(&self, rules: Rules) -> Option<Instant> {
        let is_void = self.is_yielding() && rules.apply(Rule::YieldVoids);
        self.end.filter(|_| !self.is_tainted && !is_void)
    }

    pub(super) const fn number(&self) -> Option<Drawn> {
        self.number
    }

    /// Whether an extension should turn the vote into a lease that lasts longer than until `useful_from`.
    pub(super) fn wants_extension(&self, now: Instant, useful_from: Instant, patience: Duration) -> bool {
        let is_due = self.extended_at.is_none_or(|at| at.after(patience) <= now);
        self.vote == Vote::Granted && is_due && self.is_open() && self.end.is_none_or(|end| end < useful_from)
    }

    /// Whether an extension can make the node's lease longer. One at a time: a silent node owes no more than that.
    pub(super) fn is_renewable(&self) -> bool {
        let is_extending = self.in_flight.any(|sent| matches!(sent.verb, Verb::Extend { .. }));
        self.vote != Vote::NotOurs && self.trace != Trace::None && !is_extending && self.is_open()
    }

    pub(super) fn wants_to_yield(&self) -> bool {
        self.vote == Vote::Granted && self.is_beaten && self.is_open()
    }

    pub(super) fn wants_to_ask(&self, now: Instant) -> bool {
        self.recheck_at.is_some_and(|at| at <= now) && self.is_open() && !self.is_asking()
    }

    fn is_asking(&self) -> bool {
        self.in_flight.any(|sent| matches!(sent.verb, Verb::Acquire { .. }))
    }

    /// Whether the node can be sent another command. Nothing may follow a yield: a script that the server had lost is
    /// sent again, and would be executed after it.
    pub(super) fn is_open(&self) -> bool {
        !self.is_tainted && !self.is_yielding() && self.in_flight.len() < MOST_IN_FLIGHT
    }

    /// When there is something to do at this node, if no answer and no wake-up comes before. `asks`: it would be asked
    /// for the lock when that is due.
    pub(super) fn next_event(&self, now: Instant, patience: Duration, asks: bool) -> Option<Instant> {
        let recheck = self.recheck_at.filter(|_| asks && self.is_open() && !self.is_asking());
        let late = self.late_at(patience).filter(|late| now < *late);
        let again = self.extended_at.map(|at| at.after(patience)).filter(|at| now < *at);
        [recheck, late, again].into_iter().flatten().min()
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.in_flight.len() > 0
    }

    /// Forgets the answers that are still to come, before a release: it follows on the same connection.
    pub(super) fn forget_answers(&mut self) {
        self.in_flight.clear();
    }

    /// The node is sent a release, and nothing more.
    pub(super) fn forget(&mut self) {
        self.forget_answers();
        (self.vote, self.trace) = (Vote::NotOurs, Trace::None);
    }

    /// Whether the node may know the token, as holder or in its queue.
    pub(super) fn may_know(&self) -> bool {
        self.trace != Trace::None || self.is_awaited()
    }

    /// Why the node does not count, if it does not, after it had `patience` to answer.
    pub(super) fn reason(&self, now: Instant, patience: Duration) -> Option<NodeError> {
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

/// When the key of a holder has expired for certain.
fn expiry(left: Option<Duration>, now: Instant, rules: Rules) -> Option<Instant> {
    left.filter(|_| rules.apply(Rule::TtlTimer)).map(|left| now.after(left + EXPIRY_MARGIN))
}

/// Whether an answer says that others want the lock, too.
const fn is_contended(reply: Reply) -> bool {
    match reply {
        Reply::Granted { smaller, .. } => smaller,
        Reply::Extended { waiters, .. } => waiters > 0,
        Reply::Held | Reply::Queued { .. } | Reply::Yielded { .. } => true,
        Reply::Kept | Reply::Released | Reply::NotOwner => false,
    }
}
