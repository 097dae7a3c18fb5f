//! What the answers of one node mean.

use super::voter::{AFTER_FAILURE, News, NodeStanding, Vote};
use crate::error::NodeError;
use crate::protocol::candidate::fencing_rounds::Drawn;
use crate::protocol::candidate::footprint::Trace;
use crate::protocol::candidate::in_flight::{InFlight, Queue};
use crate::protocol::command::{Answer, Reply, Verb};
use crate::protocol::rules::{Rule, Rules};
use crate::time::clock::{Clock, Instant};
use std::task::{Context, Poll};
use std::time::Duration;

/// The holder's key has expired for certain when it is this old: Redis and our timers count whole milliseconds.
const EXPIRY_MARGIN: Duration = Duration::from_millis(5);
/// When a holder has crashed, its successors ask one after the other, so that the first one finds no crowd.
const PER_RANK: Duration = Duration::from_millis(30);
const MOST_RANKS: u32 = 10;

impl NodeStanding {
    /// Takes in the answers that are here, and sees to it that the task of `cx` is woken for the next one.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, clock: Clock, rules: Rules) -> News {
        self.take_in_all(|in_flight| in_flight.poll_answer(cx), clock, rules)
    }

    /// Takes in the answers that are here.
    pub(crate) fn settle(&mut self, clock: Clock, rules: Rules) -> News {
        self.take_in_all(|in_flight| in_flight.try_answer().map_or(Poll::Pending, Poll::Ready), clock, rules)
    }

    fn take_in_all(
        &mut self,
        mut next: impl FnMut(&mut Queue) -> Poll<(InFlight, Answer)>,
        clock: Clock,
        rules: Rules,
    ) -> News {
        let mut news = News::default();
        while let Poll::Ready((sent, answer)) = next(&mut self.in_flight) {
            news.is_any = true;
            news.is_contended |= self.take_in(&sent, answer, clock.now(), rules);
        }
        news
    }

    /// The clock of the server went ahead by at most `step`: the leases that it gave before end so much earlier.
    ///
    /// Those are the ones whose answers are here. Those that are still to come were given after the step, because the
    /// answers of a connection come in the order of its commands.
    pub(crate) fn shorten(&mut self, step: Duration, clock: Clock, rules: Rules) -> News {
        let news = self.settle(clock, rules);
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
