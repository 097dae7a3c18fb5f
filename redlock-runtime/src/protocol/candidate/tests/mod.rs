//! Tests of a candidate without nodes. This file contains the scene.

mod adopting;
mod answers;
mod claims;
mod distrust;
mod idling;
mod joining;
mod losing;
mod lowering;
mod numbers;
mod passing;
mod permits;
mod revoking;
mod taken;
mod waiting;
mod winning_back;
mod yielding;

use super::in_flight::InFlight;
use super::vote::Vote;
use super::voter::Voter;
use super::winning_back::Round;
use super::*;
use crate::error::{ErrorReply, NodeError};
use crate::protocol::command::{Answer, ProvenClaim, Reply, Verb};
use crate::protocol::local_budget::LocalBudget;
use crate::protocol::quorum::Quorum;
use crate::protocol::rules::Rules;
use crate::protocol::timing::CLAIM;

const TTL: Duration = Duration::from_secs(10);
const NODE_TIMEOUT: Duration = Duration::from_millis(50);
const MILLISECOND: Duration = Duration::from_millis(1);
const TERMS: LeaseTerms = LeaseTerms {
    ttl: TTL,
    drift_factor: 0.01,
    node_timeout: NODE_TIMEOUT,
    quorum: Quorum::of(1, 0),
    rules: Rules { without: None },
};

const SET: Verb = Verb::SetNx { ttl: TTL };
const ACQUIRE: Verb = Verb::Acquire { ttl: TTL, claim: CLAIM, holds: false };
const WIN_BACK: Verb = Verb::Acquire { ttl: TTL, claim: CLAIM, holds: true };
const EXTEND: Verb = Verb::Extend { ttl: TTL };
const RENEW: Verb = Verb::Renew { ttl: TTL };
const ADOPT: Verb = Verb::Adopt { ttl: TTL };
const YIELD: Verb = Verb::Yield { claim: CLAIM };

const GRANTED: Reply = Reply::Granted { smaller: false, number: None };
const BEATEN: Reply = Reply::Granted { smaller: true, number: None };
const EXTENDED: Reply = Reply::Extended { waiters: 0, number: None };
/// The holder has more time left than any of the tests take.
const QUEUED: Reply = Reply::Queued { left: Some(TTL), rank: 0 };
const YIELDED: Reply = Reply::Yielded { left: Some(TTL) };

/// Token whose nodes answer, and whose time passes, only when the test decides it.
#[derive(Clone)]
struct Scene {
    candidate: Candidate,
    now: Instant,
}

/// Converts a renewal to an extension, for tests to which the difference does not matter.
const fn extending(verb: Verb) -> Verb {
    match verb {
        Verb::Renew { ttl } => Verb::Extend { ttl },
        verb => verb,
    }
}

impl Scene {
    fn new(nodes: usize) -> Self {
        let now = Instant::from_origin(Duration::from_secs(1));
        let terms = LeaseTerms { quorum: Quorum::of(nodes, 0), ..TERMS };
        Self { candidate: Candidate::new(std::iter::repeat_n(1, nodes), terms, now), now }
    }

    /// Creates a token that began to wait long enough ago, so that its wake-up channels are open.
    fn waiting(nodes: usize) -> Self {
        let mut scene = Self::new(nodes);
        scene.candidate.wait(scene.now);
        scene.advance(NODE_TIMEOUT);
        scene
    }

    /// Creates a token that has the lock at `nodes` nodes, by one round.
    fn holding(nodes: usize) -> Self {
        let mut scene = Self::new(nodes);
        (0..nodes).for_each(|node| scene.hear(node, SET, GRANTED));
        scene.candidate.hold(scene.now);
        scene
    }

    fn advance(&mut self, time: Duration) {
        self.now = self.now.after(time);
    }

    const fn now(&self) -> Instant {
        self.now
    }

    fn voter(&self, node: usize) -> &Voter {
        &self.candidate.voters[node]
    }

    /// Returns the vote of a node, without its times.
    fn vote(&self, node: usize) -> Vote {
        match self.voter(node).vote {
            Vote::Granted { .. } | Vote::Claimed { .. } => Vote::CLAIM,
            Vote::Taken { .. } => Vote::TAKEN,
            vote @ (Vote::Open | Vote::Failed) => vote,
        }
    }

    fn send(&mut self, node: usize, verb: Verb) {
        self.candidate.voters[node].asked(InFlight::new(verb, self.now, TERMS.provable(self.now)));
    }

    /// Answers the oldest unanswered command.
    fn answer(&mut self, node: usize, answer: Answer) {
        assert!(self.voter(node).is_awaited());
        self.candidate.answered(node, answer, self.now);
        self.candidate.note_proof();
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
        self.candidate.claimed(node, None, self.now);
    }

    /// Announces a claim of the node that begins now.
    fn prove(&mut self, node: usize) {
        self.candidate.claimed(node, Some(ProvenClaim { length: CLAIM, from: self.now }), self.now);
    }

    /// Returns the next command for every node.
    fn wants(&self) -> Vec<Option<Verb>> {
        (0..self.candidate.voters.len()).map(|node| self.candidate.wants(node, self.now)).collect()
    }

    /// Returns the commands of a holder with its next renewal.
    fn renewal(&self) -> Vec<Option<Verb>> {
        let nodes = 0..self.candidate.voters.len();
        nodes.map(|node| self.candidate.holder_command(node, Round::All, self.now, self.now).map(extending)).collect()
    }

    fn is_won(&self) -> bool {
        self.candidate.is_won(self.now)
    }

    /// Returns the provable duration of a lock that is taken now.
    fn provable(&self) -> Duration {
        TERMS.provable(self.now).since(self.now)
    }

    /// Returns the time until the next action.
    fn idle_for(&self) -> Duration {
        self.candidate.next_event(self.now).since(self.now)
    }
}

fn disconnected() -> NodeError {
    NodeError::Disconnected
}

fn unreachable() -> NodeError {
    NodeError::Unreachable("".into())
}

impl Candidate {
    /// Size of the data of a candidate about each node.
    pub(crate) const BYTES_PER_NODE: usize = size_of::<Voter>();
}
