//! Drawing the fencing number of a lock that is held.
//!
//! It comes with the votes, at no cost, where the counters of the nodes are alike. Where they differ, one more round trip
//! raises the lower ones, and another one if a node that was not heard of before is further ahead.

use super::Ownership;
use crate::error::{LockError, NodeError, NodeFailure};
use crate::protocol::candidate::fencing_rounds::{Decision, Drawn};
use crate::protocol::candidate::voter::NodeStanding;
use crate::protocol::candidate::{Phase, Standing};
use crate::protocol::fencing_token::FencingToken;
use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::task::Poll;

/// Why a lock that is held has no number.
#[derive(Debug)]
pub(crate) enum Unnumbered {
    /// Others have drawn in between, or the lease has run out. Another token, which draws above this, may have more luck.
    Overtaken { above: u64 },
    /// Too few nodes gave a number.
    Failed(LockError),
}

impl Ownership {
    /// A call acts for the token from now on, fenced or not.
    ///
    /// Its number will be above all that this process knows of, those of other locks included: nodes whose counters are
    /// lower, because they are new, have expired or were lost, give the same one then.
    pub(crate) fn want_number(&self, is_fenced: bool) {
        let known = self.core.largest_number.load(Ordering::Relaxed);
        self.standing().numbers.want(is_fenced, known);
    }

    /// Another token with the same place in the queues, whose number is above `above`.
    pub(crate) fn again_above(&self, above: u64) -> Self {
        let again = self.again();
        again.standing().numbers.want(true, above);
        again
    }

    /// The fencing token of the call that has the lock now: the next one of the number that the token has already, or the
    /// first one of a new number.
    ///
    /// # Errors
    /// [`Unnumbered`]; the lock is to be given back then.
    ///
    /// # Cancel safety
    /// Numbers that are drawn and not used leave gaps.
    pub(crate) async fn numbered(&self) -> Result<FencingToken, Unnumbered> {
        if let Some(token) = self.standing().numbers.next_token() {
            return Ok(token);
        }
        let _turn = self.extending.lock().await;
        let mut decision = decision(&self.standing());
        if decision == Decision::Missing {
            decision = self.round().await;
        }
        let mut raised_to = 0;
        // Each time to more: a node that was not heard of before may be further ahead.
        while let Decision::Differ { highest } = decision
            && highest > raised_to
        {
            raised_to = highest;
            decision = self.raised(highest).await;
        }
        self.first_token(decision)
    }

    async fn raised(&self, to: u64) -> Decision {
        self.standing().numbers.raise(to);
        match self.round().await {
            // Nodes that answer and refuse have given this number, or a larger one, to somebody else.
            Decision::Missing if self.is_heard() => Decision::Differ { highest: to },
            decision => decision,
        }
    }

    /// Asks every node at once, and waits until a quorum has given a number or cannot any more.
    async fn round(&self) -> Decision {
        let now = self.core.clock.now();
        {
            let mut standing = self.standing();
            standing.numbers.start_anew();
            let (verb, fence) = (standing.extension(), standing.numbers.fence());
            self.ask_all_of(&mut standing, verb, fence, now);
        }
        let answers = poll_fn(|cx| {
            let mut standing = self.standing();
            standing.poll(cx, self.core.clock);
            match decision(&standing) {
                Decision::Missing if standing.is_awaited() => Poll::Pending,
                decision => Poll::Ready(decision),
            }
        });
        let decided = tokio::time::timeout(self.node_timeout(), answers).await;
        decided.unwrap_or_else(|_| decision(&self.standing()))
    }

    fn first_token(&self, decision: Decision) -> Result<FencingToken, Unnumbered> {
        let mut standing = self.standing();
        let above = match decision {
            Decision::Missing => return Err(Unnumbered::Failed(self.no_number(&standing))),
            Decision::Differ { highest } => highest,
            Decision::Agreed(number) => number,
        };
        let is_held = standing.phase == Phase::Holding && standing.is_won(self.core.clock.now());
        if !is_held {
            standing.too_late();
        }
        if matches!(decision, Decision::Differ { .. }) || !is_held {
            return Err(Unnumbered::Overtaken { above });
        }
        self.learn_numbers(&standing);
        standing.numbers.agreed(above);
        standing.numbers.next_token().ok_or(Unnumbered::Overtaken { above })
    }

    /// Takes note of what the nodes have given, also of what came too late to count: a node that is ahead of the others
    /// would cost a round trip again and again. The next number is above its own, and all nodes are alike then.
    pub(super) fn learn_numbers(&self, standing: &Standing) {
        if let Some(Drawn { number, .. }) =
            standing.nodes.iter().filter_map(NodeStanding::number).max_by_key(|drawn| drawn.number)
        {
            self.core.largest_number.fetch_max(number, Ordering::Relaxed);
        }
    }

    /// The error when too few nodes gave a number.
    fn no_number(&self, standing: &Standing) -> LockError {
        let now = self.core.clock.now();
        let failures = self.core.nodes.iter().zip(&standing.nodes).filter_map(|(reclaim, node)| {
            if node.number().is_some_and(|drawn| standing.numbers.counts(drawn)) {
                return None;
            }
            let unnumbered = || NodeError::Refused("with the lock and without a fencing number".into());
            let error = node.reason(now, self.node_timeout()).unwrap_or_else(unnumbered);
            Some(NodeFailure { node: reclaim.label().into(), error })
        });
        self.core.no_quorum(Some(self.key()), failures.collect())
    }
}

fn decision(standing: &Standing) -> Decision {
    standing.numbers.decide(standing.nodes.iter().filter_map(NodeStanding::number), standing.needed())
}
