//! What nodes say about a token and what follows from it, without nodes. Here: the scene.

mod adopting;
mod answers;
mod distrust;
mod losing;
mod passing;
mod waiting;
mod yielding;

use crate::error::NodeError;
use crate::node::Pending;
use crate::protocol::candidate::in_flight::InFlight;
use crate::protocol::candidate::voter::NodeStanding;
use crate::protocol::candidate::{Phase, Standing, Terms};
use crate::protocol::command::{Answer, Reply, Verb};
use crate::protocol::lease::CLAIM;
use crate::protocol::quorum::Quorum;
use crate::protocol::rules::Rules;
use crate::time::clock::{Clock, Instant};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::advance;

const TTL: Duration = Duration::from_secs(10);
const NODE_TIMEOUT: Duration = Duration::from_millis(50);
const MILLISECOND: Duration = Duration::from_millis(1);
const TERMS: Terms = Terms {
    ttl: TTL,
    drift_factor: 0.01,
    node_timeout: NODE_TIMEOUT,
    quorum: Quorum::of(1, 0),
    rules: Rules { without: None },
};

const SET: Verb = Verb::SetNx { ttl: TTL };
const ACQUIRE: Verb = Verb::Acquire { ttl: TTL, claim: CLAIM };
const EXTEND: Verb = Verb::Extend { ttl: TTL };
const ADOPT: Verb = Verb::Adopt { ttl: TTL };
const YIELD: Verb = Verb::Yield { claim: CLAIM };

const GRANTED: Reply = Reply::Granted { smaller: false, number: None };
const BEATEN: Reply = Reply::Granted { smaller: true, number: None };
const EXTENDED: Reply = Reply::Extended { waiters: 0, number: None };
/// The holder has more time left than any of the tests take.
const QUEUED: Reply = Reply::Queued { left: Some(TTL), rank: 0 };
const YIELDED: Reply = Reply::Yielded { left: Some(TTL) };

/// A token and its nodes, which answer when the test says so, in virtual time.
struct Scene {
    standing: Standing,
    clock: Clock,
    unanswered: Vec<VecDeque<oneshot::Sender<Answer>>>,
}

impl Scene {
    fn new(nodes: usize) -> Self {
        let clock = Clock::tokio();
        let terms = Terms { quorum: Quorum::of(nodes, 0), ..TERMS };
        let standing = Standing::new(std::iter::repeat_n(1, nodes), terms, clock.now());
        Self { standing, clock, unanswered: (0..nodes).map(|_| VecDeque::new()).collect() }
    }

    /// A token that has begun to wait, long enough ago that it no longer waits for its channels.
    async fn waiting(nodes: usize) -> Self {
        let mut scene = Self::new(nodes);
        scene.standing.wait(scene.now());
        advance(NODE_TIMEOUT).await;
        scene
    }

    /// A token that has the lock at `nodes` nodes, by one round.
    fn holding(nodes: usize) -> Self {
        let mut scene = Self::new(nodes);
        (0..nodes).for_each(|node| scene.hear(node, SET, GRANTED));
        scene.standing.hold(scene.now());
        scene
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn node(&self, node: usize) -> &NodeStanding {
        &self.standing.nodes[node]
    }

    fn send(&mut self, node: usize, verb: Verb) {
        let (answer, pending) = oneshot::channel();
        self.unanswered[node].push_back(answer);
        let now = self.now();
        self.standing.sent(node, InFlight::new(verb, now, TERMS.provable(now), Pending::later(pending)));
    }

    /// The answer to the oldest command that has none.
    fn answer(&mut self, node: usize, answer: Answer) {
        self.unanswered[node].pop_front().unwrap().send(answer).unwrap();
        self.standing.settle(self.clock);
    }

    fn hear(&mut self, node: usize, verb: Verb, reply: Reply) {
        self.send(node, verb);
        self.answer(node, Ok(reply));
    }

    fn fail(&mut self, node: usize, verb: Verb, error: NodeError) {
        self.send(node, verb);
        self.answer(node, Err(error));
    }

    fn claim(&mut self, node: usize) {
        let now = self.now();
        self.standing.claimed(node, now);
    }

    /// What every node should be asked next.
    fn wants(&self) -> Vec<Option<Verb>> {
        (0..self.unanswered.len()).map(|node| self.standing.wants(node, self.now())).collect()
    }

    fn is_won(&self) -> bool {
        self.standing.is_won(self.now())
    }

    /// How long the lock is provably held when it is taken now.
    fn provable(&self) -> Duration {
        TERMS.provable(self.now()).since(self.now())
    }

    /// How long until there is something to do.
    fn idle_for(&self) -> Duration {
        self.standing.next_event(self.now()).since(self.now())
    }
}

fn disconnected() -> NodeError {
    NodeError::Disconnected
}

fn unreachable() -> NodeError {
    NodeError::Unreachable("".into())
}
