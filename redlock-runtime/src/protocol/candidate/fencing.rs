//! How a candidate comes to its fencing number.
//!
//! 1. The number is asked for together with the lock, at no cost, and every node answers with what its counter gives.
//! 2. When a quorum has given the same number in one round, that is the number of the token.
//! 3. When no round has enough numbers, a round of its own asks for one, with an extension.
//! 4. When a quorum has given different numbers, another round raises the lower counters to the highest. A node that was
//!    not heard of before may be further ahead, so that this is repeated as long as the highest grows.
//! 5. Nodes that answer and refuse to raise have given this number, or a larger one, to somebody else: the token is
//!    overtaken. Another token, which draws above that, may have more luck.
//! 6. The number counts only if the lock is still held when it is agreed on.

use super::fencing_number::{Drawn, FencingDecision};
use super::next::Outgoing;
use super::voter::Voter;
use super::{Candidate, Phase};
use crate::error::NodeError;
use crate::protocol::fencing_token::FencingToken;
use crate::time::clock::Instant;

/// Why a lock that is held has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotIssued {
    /// Too few nodes gave a number.
    Missing,
    /// Others have drawn in between, or the lease has run out. Another token, which draws above this, may have more luck.
    Overtaken { above: u64 },
}

impl Candidate {
    /// A call acts for the token from now on, fenced or not. Its number will be above `known`.
    pub(crate) fn want_number(&mut self, is_fenced: bool, known: u64) {
        self.fencing.want(is_fenced, known);
    }

    /// The fencing token of the call that has the lock now, if the token has a number that is good for one call more.
    pub(crate) fn next_token(&mut self) -> Option<FencingToken> {
        self.fencing.next_token()
    }

    /// From now on, the counters are to be raised to `to`.
    pub(crate) const fn raise(&mut self, to: u64) {
        self.fencing.raise(to);
    }

    /// Asks every node that takes more commands for a number, and only these answers count.
    pub(crate) fn begin_fencing_round(&mut self, now: Instant, mut send: impl FnMut(Outgoing)) {
        self.fencing.start_anew();
        self.ask_all(self.extension_verb(self.terms.ttl), self.fence(), now, &mut send);
    }

    /// What the numbers mean that the nodes have given.
    pub(crate) fn fencing_decision(&self) -> FencingDecision {
        self.fencing.decide(self.voters.iter().filter_map(Voter::number), self.terms.quorum.needed)
    }

    /// The first token of the number that was decided on.
    ///
    /// # Errors
    /// [`NotIssued`] when there is none, or the lock is not held any more.
    pub(crate) fn issue(&mut self, decision: FencingDecision, now: Instant) -> Result<FencingToken, NotIssued> {
        let (above, is_agreed) = match decision {
            FencingDecision::Missing => return Err(NotIssued::Missing),
            FencingDecision::Differ { highest } => (highest, false),
            FencingDecision::Agreed(number) => (number, true),
        };
        let is_holding = self.phase == Phase::Holding && self.is_won(now);
        if !is_holding {
            self.fail_as_too_late();
        }
        if !is_agreed || !is_holding {
            return Err(NotIssued::Overtaken { above });
        }
        self.fencing.agreed(above);
        self.fencing.next_token().ok_or(NotIssued::Overtaken { above })
    }

    /// The largest number that the nodes have given, also those that came too late to count: a node that is ahead of the
    /// others would cost a round trip again and again. The next number is above it, and all nodes are alike then.
    pub(crate) fn largest_number(&self) -> Option<u64> {
        self.voters.iter().filter_map(Voter::number).map(|drawn| drawn.number).max()
    }

    /// Why each node has given no number that counts, if it has not.
    pub(crate) fn unnumbered_reasons(&self, now: Instant) -> impl Iterator<Item = Option<NodeError>> {
        let counts = |drawn: Drawn| self.fencing.counts(drawn);
        self.voters.iter().map(move |voter| {
            let is_numbered = voter.number().is_some_and(counts);
            (!is_numbered).then(|| voter.reason(now, self.terms.node_timeout).unwrap_or(NodeError::Unnumbered))
        })
    }
}
