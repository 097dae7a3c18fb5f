//! What is known of the nodes about one token.

use crate::clock::Instant;
use crate::error::NodeError;
use crate::lease;
use crate::node::{Answer, Pending, Reply};
use crate::quorum::{Tally, Verdict};
use std::task::{Context, Poll, Waker};

pub(super) struct Standing {
    pub(super) nodes: Box<[NodeStanding]>,
    /// The latest moment until which the lock ever was provably ours.
    pub(super) proven_until: Option<Instant>,
    pub(super) released: bool,
}

/// What is known of one node.
#[derive(Debug)]
pub(super) struct NodeStanding {
    pub(super) vote: Vote,
    /// Until when the node provably holds the lock for us.
    pub(super) end: Option<Instant>,
    /// Why the last command got no answer.
    pub(super) failure: Option<NodeError>,
    /// Whether the node may hold the lock for this token, by what it has answered and by what it has not. A lost reply
    /// and a cut connection count as "maybe".
    may_hold: bool,
    /// The last command, as long as its answer has not been seen. Commands stay in order, so that the answer to the
    /// last one says all.
    pub(super) in_flight: Option<InFlight>,
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

#[derive(Debug)]
pub(super) struct InFlight {
    /// The lease end that a positive answer proves.
    pub(super) end: Instant,
    pub(super) answer: Pending,
}

impl Standing {
    pub(super) fn new(nodes: usize) -> Self {
        let node = || NodeStanding { vote: Vote::Open, end: None, failure: None, may_hold: false, in_flight: None };
        Self { nodes: std::iter::repeat_with(node).take(nodes).collect(), proven_until: None, released: false }
    }

    /// Takes in the answers that are here.
    pub(super) fn settle(&mut self) {
        self.poll(&mut Context::from_waker(Waker::noop()));
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        let mut is_news = false;
        for node in &mut self.nodes {
            is_news |= node.poll(cx);
        }
        if is_news {
            self.proven_until = self.proven_until.max(self.valid_until());
        }
    }

    /// The moment until which a majority provably holds the lock for us.
    pub(super) fn valid_until(&self) -> Option<Instant> {
        lease::valid_until(&self.nodes.iter().filter_map(|node| node.end), self.nodes.len())
    }

    /// The nodes that said that the lock is not ours.
    pub(super) fn not_ours(&self) -> usize {
        self.nodes.iter().filter(|node| node.vote == Vote::NotOurs && !node.may_hold()).count()
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
            node.vote = Vote::Failed;
            node.failure = Some(error.clone());
        }
        self.tally().verdict()
    }
}

impl NodeStanding {
    /// Waits for the answer to `sent` from now on. A command before it that was not answered may have been executed.
    pub(super) fn awaits(&mut self, sent: InFlight) {
        self.may_hold |= self.in_flight.replace(sent).is_some();
    }

    /// Whether there was an answer.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(sent) = &mut self.in_flight
            && let Poll::Ready(answer) = sent.answer.poll_answer(cx)
        {
            let end = sent.end;
            self.in_flight = None;
            self.take_in(answer, end);
            return true;
        }
        false
    }

    fn take_in(&mut self, answer: Answer, end: Instant) {
        self.failure = None;
        match answer {
            Ok(Reply::Granted { .. } | Reply::Extended { .. }) => {
                self.end = self.end.max(Some(end));
                self.vote = Vote::Granted;
                self.may_hold = true;
            }
            Ok(Reply::Held | Reply::NotOwner) => {
                self.end = None;
                self.vote = Vote::NotOurs;
                self.may_hold = false;
            }
            // Answers to commands that are not sent yet.
            Ok(Reply::Released | Reply::Queued { .. } | Reply::Kept | Reply::Yielded { .. }) => {}
            Err(error) => {
                // Silence changes nothing about a vote that was given.
                if self.vote == Vote::Open {
                    self.vote = Vote::Failed;
                }
                // Nor does a command that was not sent, or was refused, change what those before it have done.
                self.may_hold |=
                    matches!(error, NodeError::Disconnected | NodeError::TimedOut(_) | NodeError::Unintelligible(_));
                self.failure = Some(error);
            }
        }
    }

    /// Whether the node may hold the lock for this token.
    pub(super) const fn may_hold(&self) -> bool {
        self.may_hold || self.in_flight.is_some()
    }

    /// Why the node does not count, if it does not. `silence` is the reason for an answer that is still missing.
    pub(super) fn reason(&self, silence: Option<&NodeError>) -> Option<NodeError> {
        match (silence, self.vote) {
            (Some(silence), _) if self.in_flight.is_some() => Some(silence.clone()),
            (_, Vote::NotOurs) => Some(NodeError::Held),
            (_, Vote::Open) => Some(self.failure.clone().unwrap_or(NodeError::Unanswered)),
            (_, Vote::Granted | Vote::Failed) => self.failure.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    fn heard(answers: impl IntoIterator<Item = (Answer, u64)>) -> NodeStanding {
        let mut standing = Standing::new(1);
        let node = &mut standing.nodes[0];
        for (answer, end) in answers {
            node.awaits(InFlight { end: at(end), answer: Pending::answered(answer) });
            node.poll(&mut Context::from_waker(Waker::noop()));
        }
        standing.nodes.into_iter().next().unwrap()
    }

    #[test]
    fn partial_rounds_compose() {
        let silence = || Err(NodeError::Disconnected);
        let node = heard([(Ok(Reply::Granted { smaller: false }), 10), (silence(), 99)]);
        assert_eq!((node.vote, node.end), (Vote::Granted, Some(at(10))), "silence changes nothing");
        let node = heard([(Ok(Reply::Granted { smaller: false }), 10), (Ok(Reply::Extended { waiters: 0 }), 20)]);
        assert_eq!(node.end, Some(at(20)), "a later answer raises the end");
        let node = heard([(Ok(Reply::Granted { smaller: false }), 10), (Ok(Reply::NotOwner), 20)]);
        assert_eq!((node.vote, node.end), (Vote::NotOurs, None), "\"not yours\" takes the node out");
    }

    #[test]
    fn whatever_may_have_taken_the_lock_is_released() {
        let table = [
            (Ok(Reply::Granted { smaller: false }), true),
            (Ok(Reply::Held), false),
            (Err(NodeError::Disconnected), true),
            (Err(NodeError::TimedOut(Duration::ZERO)), true),
            (Err(NodeError::Unintelligible("nil".into())), true),
            (Err(NodeError::Unreachable("".into())), false),
            (Err(NodeError::Stalled(Duration::ZERO)), false),
            (Err(NodeError::Refused("READONLY".into())), false),
        ];
        for (answer, may_hold) in table {
            let shown = format!("{answer:?}");
            assert_eq!(heard([(answer, 10)]).may_hold(), may_hold, "{shown}");
        }
    }

    #[test]
    fn a_later_command_that_was_not_sent_does_not_make_the_first_one_undone() {
        let down = || Err(NodeError::Unreachable("".into()));
        assert!(heard([(Err(NodeError::Disconnected), 10), (down(), 20)]).may_hold());
        assert!(!heard([(down(), 10), (down(), 20)]).may_hold());
        let mut node = heard([]);
        let unanswered = || InFlight { end: at(10), answer: Pending::Answered(None) };
        node.awaits(unanswered());
        assert!(node.may_hold(), "an answer that is still to come");
        node.awaits(InFlight { end: at(20), answer: Pending::answered(Err(NodeError::Stalled(Duration::ZERO))) });
        node.poll(&mut Context::from_waker(Waker::noop()));
        assert!(node.may_hold(), "an answer that nobody waits for any more");
    }
}
