//! What to ask the nodes next, and when.

use super::{Phase, Standing};
use crate::protocol::candidate::voter::Vote;
use crate::protocol::command::Verb;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::time::Duration;

/// How often to look whether the channel for wake-ups is open.
const LISTENING_PAUSE: Duration = Duration::from_millis(2);

impl Standing {
    /// Time passes for a waiting token.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.poll_at <= now {
            self.ask_all(now);
        }
        // A node that abstains stands for the holders that it may have forgotten: they are waited for.
        let present = self.nodes.iter().filter(|node| node.is_present(now, self.terms.node_timeout)).count();
        let is_silent = present < self.terms.quorum.needed || self.votes(now) >= self.terms.quorum.needed;
        self.silent_since = if is_silent { self.silent_since.or(Some(now)) } else { None };
    }

    /// For how long too few nodes have taken part, or have answered too late for a lease.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        self.silent_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// The command that node number `index` should be sent next.
    pub(crate) fn wants(&self, index: usize, now: Instant) -> Option<Verb> {
        let node = self.nodes.get(index)?;
        let (ttl, claim) = (self.terms.ttl, self.terms.claim());
        // Numbers must be of one round: leases from before it do not do.
        let is_drawing = self.numbers.is_drawing();
        let useful_from = if is_drawing { self.terms.provable(now) } else { self.terms.useful_from(now) };
        let wants_extension = || node.wants_extension(now, useful_from, self.terms.node_timeout);
        match self.phase {
            // A claim that came late: the others have made a majority without it.
            Phase::Holding => (node.end(self.terms.rules).is_none() && wants_extension()).then_some(self.extension()),
            Phase::Waiting if self.votes(now) >= self.terms.quorum.needed => {
                wants_extension().then_some(self.extension())
            }
            Phase::Waiting if node.wants_to_yield() && self.may_yield(now) => Some(Verb::Yield { claim }),
            Phase::Waiting => node.wants_to_ask(now).then_some(Verb::Acquire { ttl, claim }),
            Phase::Claiming | Phase::Forfeited | Phase::Left => None,
        }
    }

    /// Without the rule, a yield waits until every node has answered.
    fn may_yield(&self, now: Instant) -> bool {
        let all = || self.nodes.iter().all(|node| node.vote != Vote::Open && !node.is_late(now, Duration::ZERO));
        self.terms.rules.apply(Rule::YieldAtOnce) || all()
    }

    /// Whether node number `index` had better be asked a little later, because its wake-ups do not arrive yet.
    pub(crate) fn postpones(&mut self, index: usize, verb: Verb, now: Instant) -> bool {
        let is_early = matches!(verb, Verb::Acquire { .. }) && now < self.listening_by;
        if let Some(node) = self.nodes.get_mut(index).filter(|_| is_early) {
            node.ask_again(now.after(LISTENING_PAUSE));
        }
        is_early
    }

    /// When there is something to do, if no answer and no wake-up comes before.
    pub(crate) fn next_event(&self, now: Instant) -> Instant {
        // Votes that are being confirmed leave nothing to ask for.
        let asks = self.votes(now) < self.terms.quorum.needed;
        let nodes = self.nodes.iter().filter_map(|node| node.next_event(now, self.terms.node_timeout, asks));
        nodes.min().unwrap_or(self.poll_at).min(self.poll_at)
    }
}
