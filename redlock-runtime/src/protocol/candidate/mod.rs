//! What is known of all nodes about one token, and what to ask them next.
//!
//! No I/O here: answers, wake-ups and the time come in, [`Standing::wants`] says which command should go out.
//!
//! Source: "Distributed Locks with Redis", the Redis documentation, for the majority and its validity. The queues, the
//! direct hand-over and yielding are ours.

mod answers;
pub(crate) mod fencing_rounds;
pub(crate) mod footprint;
pub(crate) mod hold_period;
pub(crate) mod in_flight;
mod next;
pub(crate) mod voter;

use self::fencing_rounds::Numbers;
use self::hold_period::Tenure;
use self::in_flight::InFlight;
use self::voter::{News, NodeStanding, Vote};
use crate::client::acquisition::loss_watchers::Watchers;
use crate::error::NodeError;
use crate::protocol::command::Verb;
use crate::protocol::lease;
use crate::protocol::quorum::{Quorum, Tally, Verdict};
use crate::protocol::rules::{Rule, Rules};
use crate::request::LocalBudget;
use crate::time::clock::{Clock, Instant};
use std::task::{Context, Waker};
use std::time::Duration;

/// A waiting token asks every node again after about this time, should all wake-ups have been lost.
const POLL: Duration = Duration::from_secs(1);

pub(crate) struct Standing {
    pub(crate) nodes: Box<[NodeStanding]>,
    pub(crate) phase: Phase,
    terms: Terms,
    pub(crate) tenure: Tenure,
    /// Another worker has left the lock with another token, and this one takes its place.
    pub(crate) adopts: bool,
    pub(crate) numbers: Numbers,
    /// The latest moment until which the lock ever was provably ours.
    pub(crate) proven_until: Option<Instant>,
    /// Others want the lock, too: since when this is known.
    contended_since: Option<Instant>,
    /// Since when too few nodes have answered.
    silent_since: Option<Instant>,
    /// Until when a node whose wake-ups do not arrive yet is not asked for a place in its queue.
    listening_by: Instant,
    poll_at: Instant,
    /// Those who want to know when the lock is lost.
    pub(crate) watchers: Watchers,
    /// The task to wake when a wake-up came from a node.
    pub(crate) waker: Option<Waker>,
}

/// Where a token is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It takes the lock if it is free everywhere.
    Claiming,
    /// It stands in the queues.
    Waiting,
    /// It has, or had, the lock.
    Holding,
    /// It had the lock, and another call of this process has gone on: what the nodes may still say does not count.
    Forfeited,
    /// Its releases were sent: it is dead.
    Left,
}

/// What stays the same during the life of a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) ttl: Duration,
    pub(crate) drift_factor: f64,
    pub(crate) node_timeout: Duration,
    pub(crate) quorum: Quorum,
    pub(crate) rules: Rules,
}

impl Terms {
    /// How long the nodes keep the lock for whom they hand it to, until it has asked for its own ttl.
    pub(crate) fn claim(&self) -> Duration {
        lease::claim(self.ttl)
    }

    /// The lease end that a positive answer to a command proves that is sent at `now`.
    pub(crate) fn provable(&self, now: Instant) -> Instant {
        now.after(lease::provable(self.ttl, self.drift_factor))
    }

    /// A lease that ends before this is not worth having.
    fn useful_from(&self, now: Instant) -> Instant {
        now.after(lease::least_useful(self.ttl))
    }
}

impl Standing {
    pub(crate) fn new(epochs: impl Iterator<Item = u64>, terms: Terms, now: Instant) -> Self {
        Self {
            nodes: epochs.map(NodeStanding::new).collect(),
            phase: Phase::Claiming,
            terms,
            tenure: Tenure::new(terms.ttl, now),
            adopts: false,
            numbers: Numbers::new(terms.rules),
            proven_until: None,
            contended_since: None,
            silent_since: None,
            listening_by: now,
            poll_at: now,
            watchers: Watchers::default(),
            waker: None,
        }
    }

    /// Begins to stand in the queues.
    pub(crate) fn wait(&mut self, now: Instant) {
        self.phase = Phase::Waiting;
        self.listening_by = now.after(self.terms.node_timeout);
        self.ask_all(now);
    }

    /// The lock is ours.
    pub(crate) fn hold(&mut self, now: Instant) {
        self.phase = Phase::Holding;
        self.tenure.hold(now);
        // What counts against this token begins now, not when it began to wait.
        self.contended_since = self.contended_since.map(|_| now);
    }

    /// Whether others want the lock, too, as far as is known.
    pub(crate) const fn is_contended(&self) -> bool {
        self.contended_since.is_some()
    }

    /// Whether the next call in this process may go on with the token. A place in the queues belongs to the process.
    pub(crate) fn pass(&mut self, now: Instant, budget: LocalBudget) -> bool {
        match self.phase {
            Phase::Waiting => true,
            Phase::Claiming | Phase::Forfeited | Phase::Left => false,
            Phase::Holding if self.valid_until().is_none_or(|end| end <= now) => false,
            Phase::Holding => {
                self.tenure.pass(now, self.contended_since, budget) || !self.terms.rules.apply(Rule::PassesAreLimited)
            }
        }
    }

    /// Whether there is enough left of the lease for whom it was passed on to.
    pub(crate) fn is_passable(&self, now: Instant) -> bool {
        self.valid_until().is_some_and(|end| end.since(now) > self.terms.ttl / 4)
    }

    fn ask_all(&mut self, now: Instant) {
        self.nodes.iter_mut().for_each(|node| node.ask_again(now));
        // Spread, so that those who came together do not ask together for ever.
        self.poll_at = now.after(POLL.mul_f64(0.75 + 0.5 * fastrand::f64()));
    }

    /// Takes in the answers that are here.
    ///
    /// Without asking to be woken: whoever waits for an answer is not forgotten. And without tokio's cooperative budget,
    /// by which a task that looks at many answers is told that they are not here yet.
    pub(crate) fn settle(&mut self, clock: Clock) {
        self.learn(clock, NodeStanding::settle);
    }

    /// The same, and the task of `cx` is woken for the next one.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, clock: Clock) {
        self.learn(clock, |node, clock, rules| node.poll(cx, clock, rules));
    }

    fn learn(&mut self, clock: Clock, mut each: impl FnMut(&mut NodeStanding, Clock, Rules) -> News) {
        let counted_on = if self.watchers.is_empty() { None } else { self.held_until() };
        let mut all = News::default();
        for node in &mut self.nodes {
            let news = each(node, clock, self.terms.rules);
            all.is_any |= news.is_any;
            all.is_contended |= news.is_contended;
        }
        if all.is_contended {
            self.contended_since.get_or_insert_with(|| clock.now());
        }
        if all.is_any {
            self.proven_until = self.proven_until.max(self.valid_until());
            // A node that says "not yours" leaves the older leases of others, or none: bodies have set their timers.
            if self.held_until() < counted_on {
                self.watchers.call();
            }
        }
    }

    /// The clock of node number `index` went ahead by at most `step`.
    pub(crate) fn shorten(&mut self, index: usize, step: Duration, clock: Clock) {
        let before = self.held_until();
        if let Some(node) = self.nodes.get_mut(index) {
            let news = node.shorten(step, clock, self.terms.rules);
            if news.is_contended {
                self.contended_since.get_or_insert_with(|| clock.now());
            }
        }
        if self.held_until() < before {
            self.watchers.call();
        }
    }

    /// Takes note of the connections: one that is new has lost what its node told in the meantime.
    pub(crate) fn connections(&mut self, epochs: impl Iterator<Item = u64>, now: Instant) {
        for (node, epoch) in self.nodes.iter_mut().zip(epochs) {
            if node.connection(epoch) && self.phase == Phase::Waiting {
                node.cut(now);
            }
        }
    }

    /// Node number `index` has handed the lock to us, as a claim.
    pub(crate) fn claimed(&mut self, index: usize, now: Instant) {
        let claim_end = now.after(self.terms.claim());
        if let Some(node) = self.nodes.get_mut(index) {
            node.claimed(now, claim_end, self.terms.rules);
        }
    }

    /// Somebody else stands in the queue of node number `index`, before us if it is `smaller`.
    pub(crate) fn contended(&mut self, index: usize, is_smaller: bool, now: Instant) {
        self.contended_since.get_or_insert(now);
        if let Some(node) = self.nodes.get_mut(index).filter(|_| is_smaller) {
            node.beaten();
        }
    }

    /// Whether enough nodes answer, and vote.
    pub(crate) fn is_heard(&self, now: Instant) -> bool {
        let is_heard = |node: &&NodeStanding| node.failure.is_none() && !node.is_late(now, self.terms.node_timeout);
        self.nodes.iter().filter(is_heard).count() >= self.terms.quorum.needed
    }

    /// How many nodes hold the lock for us, as lease or as claim.
    fn votes(&self, now: Instant) -> usize {
        self.nodes.iter().filter(|node| node.is_ours(now, self.terms.node_timeout)).count()
    }

    /// How many nodes are enough.
    pub(crate) const fn needed(&self) -> usize {
        self.terms.quorum.needed
    }

    /// The command that starts the leases anew.
    ///
    /// A node that could not be asked when the lock was adopted may have it under the other token for a while yet: so the
    /// adoption goes on for as long as the lock is held.
    pub(crate) const fn extension(&self) -> Verb {
        let ttl = self.terms.ttl;
        if self.adopts { Verb::Adopt { ttl } } else { Verb::Extend { ttl } }
    }

    /// Whether an extension can make the lease of node number `index` longer.
    pub(crate) fn is_renewable(&self, index: usize) -> bool {
        self.nodes.get(index).is_some_and(|node| node.is_renewable(self.adopts))
    }

    /// Waits for the answer to `verb`, sent to node number `index` at `now`.
    pub(crate) fn sent(&mut self, index: usize, sent: InFlight) {
        if let Some(node) = self.nodes.get_mut(index) {
            node.awaits(InFlight { round: self.numbers.round(), ..sent }, self.terms.rules);
        }
    }

    /// The moment until which enough nodes provably hold the lock for us.
    pub(crate) fn valid_until(&self) -> Option<Instant> {
        if matches!(self.phase, Phase::Forfeited | Phase::Left) {
            return None;
        }
        lease::valid_until(&self.nodes.iter().filter_map(|node| node.end(self.terms.rules)), self.terms.quorum)
    }

    /// The moment until which the present call has the lock.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        let is_capped = self.terms.rules.apply(Rule::HoldsAreCapped);
        self.valid_until().map(|end| if is_capped { self.tenure.capped(end) } else { end })
    }

    /// Whether the present call may not go on with the lock, whatever the nodes say.
    pub(crate) fn has_ended(&self, now: Instant) -> bool {
        matches!(self.phase, Phase::Forfeited | Phase::Left) || self.tenure.is_used_up(now)
    }

    /// For how long the present call has had the lock.
    pub(crate) fn held_for(&self, now: Instant) -> Duration {
        self.proven_until.map_or(Duration::ZERO, |proven| self.tenure.held_for(proven, now))
    }

    /// Whether so many nodes say that the lock is not ours that it cannot be.
    pub(crate) fn is_taken(&self) -> bool {
        self.verdict() == Verdict::Contended
    }

    /// Whether any answer is still to come.
    pub(crate) fn is_awaited(&self) -> bool {
        self.nodes.iter().any(NodeStanding::is_awaited)
    }

    /// Whether the lock is ours for long enough to be useful.
    pub(crate) fn is_won(&self, now: Instant) -> bool {
        self.valid_until().is_some_and(|end| end >= self.terms.useful_from(now))
    }

    /// Whether too few nodes count for this token as things are, because some have ceased to. Another one can have a
    /// majority: it must not wait for nodes that may be away for long.
    pub(crate) fn is_spoilt(&self, now: Instant) -> bool {
        let counts = |node: &&NodeStanding| !node.is_tainted && node.is_present(now, self.terms.node_timeout);
        let is_tainted = self.nodes.iter().any(|node| node.is_tainted);
        is_tainted && self.nodes.iter().filter(counts).count() < self.terms.quorum.needed
    }

    /// The nodes that said that the lock is not ours.
    pub(crate) fn not_ours(&self) -> usize {
        self.nodes.iter().filter(|node| node.vote == Vote::NotOurs && !node.may_know()).count()
    }

    /// What the votes mean.
    pub(crate) fn verdict(&self) -> Verdict {
        let mut tally = Tally::default();
        for node in &self.nodes {
            match node.vote {
                Vote::Open => tally.open += 1,
                Vote::Granted => tally.granted += 1,
                Vote::NotOurs => tally.held += 1,
                Vote::Failed => tally.failed += 1,
            }
        }
        tally.verdict(self.terms.quorum)
    }

    /// The answers came when the lease was as good as over: the round has failed at every node.
    pub(crate) fn too_late(&mut self) -> Verdict {
        for node in &mut self.nodes {
            node.failure.get_or_insert(NodeError::TooLate);
        }
        Verdict::OutOfReach
    }

    /// Counts every node that has not answered as failed with `error`, and decides.
    pub(crate) fn give_up(&mut self, error: &NodeError) -> Verdict {
        for node in self.nodes.iter_mut().filter(|node| node.vote == Vote::Open) {
            node.vote = Vote::Failed;
            node.failure = Some(error.clone());
        }
        self.verdict()
    }
}
