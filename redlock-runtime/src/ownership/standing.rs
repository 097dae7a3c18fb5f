//! What is known of the nodes about one token.

use crate::clock::Instant;
use crate::error::NodeError;
use crate::lease::LeaseEnds;
use crate::node::{Answer, Pending, Reply};
use crate::quorum::{Tally, Verdict};
use std::task::{Context, Poll, Waker};

/// What is known of the nodes.
pub(super) struct Standing {
    pub(super) nodes: Box<[NodeStanding]>,
    pub(super) ends: LeaseEnds,
    /// Commands whose answers have not been seen, in the order of the sends.
    pub(super) in_flight: Vec<InFlight>,
    pub(super) released: bool,
}

#[derive(Clone, Debug)]
pub(super) struct NodeStanding {
    pub(super) vote: Vote,
    /// Why the last command got no answer.
    pub(super) failure: Option<NodeError>,
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

pub(super) struct InFlight {
    pub(super) node: usize,
    /// The lease end that a positive answer proves.
    pub(super) end: Instant,
    pub(super) answer: Pending,
}

impl NodeStanding {
    /// Whether the node may hold the lock for this token. A lost reply and a cut connection count as "maybe".
    pub(super) const fn may_hold(&self) -> bool {
        match self.vote {
            Vote::Open | Vote::Granted => true,
            Vote::NotOurs => false,
            Vote::Failed => matches!(self.failure, Some(NodeError::Disconnected | NodeError::TimedOut(_))),
        }
    }

    /// Why the node does not count, if it does not.
    pub(super) fn reason(&self) -> Option<NodeError> {
        match self.vote {
            Vote::NotOurs => Some(NodeError::Held),
            Vote::Open | Vote::Granted | Vote::Failed => self.failure.clone(),
        }
    }

    fn take_in(&mut self, ends: &mut LeaseEnds, sent: &InFlight, answer: Answer) {
        self.failure = None;
        match answer {
            Ok(Reply::Granted | Reply::Extended) => {
                ends.confirm(sent.node, sent.end);
                self.vote = Vote::Granted;
            }
            Ok(Reply::Held | Reply::NotOwner) => {
                ends.deny(sent.node);
                self.vote = Vote::NotOurs;
            }
            Ok(Reply::Released) => {}
            Err(error) => {
                // Silence changes nothing about a vote that was given.
                if self.vote == Vote::Open {
                    self.vote = Vote::Failed;
                }
                self.failure = Some(error);
            }
        }
    }
}

impl Standing {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes: vec![NodeStanding { vote: Vote::Open, failure: None }; nodes].into(),
            ends: LeaseEnds::none(nodes),
            in_flight: Vec::with_capacity(nodes),
            released: false,
        }
    }

    /// Takes in the answers that are here.
    pub(super) fn settle(&mut self) {
        if !self.in_flight.is_empty() {
            self.poll(&mut Context::from_waker(Waker::noop()));
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        let Self { nodes, ends, in_flight, .. } = self;
        in_flight.retain_mut(|sent| match sent.answer.poll_answer(cx) {
            Poll::Pending => true,
            Poll::Ready(answer) => {
                if let Some(node) = nodes.get_mut(sent.node) {
                    node.take_in(ends, sent, answer);
                }
                false
            }
        });
    }

    pub(super) fn awaits(&self, node: usize) -> bool {
        self.in_flight.iter().any(|sent| sent.node == node)
    }

    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for node in &self.nodes {
            match node.vote {
                Vote::Open => tally.open += 1,
                Vote::Granted => tally.granted += 1,
                Vote::NotOurs => tally.held += 1,
                Vote::Failed => tally.failed += 1,
            }
        }
        tally
    }

    /// The answers came when the lease was as good as over: the round has failed at every node.
    pub(super) fn too_late(&mut self) -> Verdict {
        for node in &mut self.nodes {
            node.failure.get_or_insert(NodeError::TooLate);
        }
        Verdict::OutOfReach
    }

    /// Counts every node that has not answered as failed with `error`, and decides.
    pub(super) fn give_up(&mut self, error: &NodeError) -> Verdict {
        for node in self.nodes.iter_mut().filter(|node| node.vote == Vote::Open) {
            *node = NodeStanding { vote: Vote::Failed, failure: Some(error.clone()) };
        }
        self.tally().verdict()
    }
}
