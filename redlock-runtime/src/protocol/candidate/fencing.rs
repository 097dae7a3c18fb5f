//! How a candidate comes to its fencing number.
//!
//! 1. A ballot is proposed together with the question for the lock, at no cost. Every node that grants the lock answers whether
//!    it has accepted it.
//! 2. When a quorum has accepted the same one, that is the number of the token.
//! 3. When some have refused, or the lock came without an answer to a ballot, a round of its own proposes a larger one, with an
//!    extension. One is enough, unless another process has proposed one in between.
//! 4. The number counts only if the lock is still held when it is agreed on.

use super::fencing_number::{Fence, FencingDecision};
use super::next::Outgoing;
use super::voter::Voter;
use super::{Candidate, Phase};
use crate::error::NodeError;
use crate::protocol::command::Number;
use crate::protocol::fencing_token::FencingToken;
use crate::time::clock::Instant;

/// Why a lock that is held has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotIssued {
    /// Too few nodes have accepted one.
    Missing,
    /// The lease has run out before. Another token may have more luck.
    TooLate,
}

impl Candidate {
    /// A call acts for the token from now on, fenced or not.
    pub(crate) const fn want_number(&mut self, is_fenced: bool) {
        self.fencing.want(is_fenced);
    }

    /// The fencing token of the call that has the lock now, if the token has a number that is good for one call more.
    pub(crate) fn next_token(&mut self) -> Option<FencingToken> {
        self.fencing.next_token()
    }

    /// The fencing token that the call has which acts for the token, if it is fenced.
    pub(crate) fn present_token(&self) -> Option<FencingToken> {
        self.fencing.present_token()
    }

    /// Proposes another ballot to every node that takes more commands.
    pub(crate) fn begin_fencing_round(&mut self, now: Instant, mut send: impl FnMut(Outgoing)) {
        // What was said before would ask for another round also when too few nodes answer, or no larger ballot can be drawn.
        self.voters.iter_mut().for_each(|voter| voter.remarks.set_number(None));
        self.ask_all(self.extension_verb(self.terms.ttl), Some(Fence::New), now, &mut send);
    }

    /// What the nodes have said about numbers.
    pub(crate) fn fencing_decision(&self, now: Instant) -> FencingDecision {
        let counts = |voter: &&Voter| voter.lease_end().is_some_and(|end| now < end);
        self.fencing.decide(
            self.voters.iter().filter(counts).filter_map(|voter| voter.remarks.number()),
            self.terms.quorum.needed,
        )
    }

    /// Whether the answers that are still to come may make a quorum accept one ballot.
    pub(crate) fn may_agree(&self) -> bool {
        let (awaited, answered): (Vec<_>, Vec<_>) = self.voters.iter().partition(|voter| voter.is_awaited());
        let alike = |one: &Voter| {
            answered
                .iter()
                .filter(|other| other.has_accepted() && other.remarks.number() == one.remarks.number())
                .count()
        };
        awaited.len() + answered.iter().map(|voter| alike(voter)).max().unwrap_or(0) >= self.terms.quorum.needed
    }

    /// Whether a quorum may accept a larger ballot, where there is none that is above what `is_in_reach` says no to.
    pub(crate) fn may_be_accepted_above(&self, is_in_reach: impl Fn(u64) -> bool) -> bool {
        let may_accept = |voter: &&Voter| !matches!(voter.remarks.number(), Some(Number::Refused { largest }) if !is_in_reach(largest));
        self.voters.iter().filter(may_accept).count() >= self.terms.quorum.needed
    }

    /// The first token of the number that was decided on.
    ///
    /// # Errors
    /// [`NotIssued`] when there is none, or the lock is not held any more.
    pub(crate) fn issue(&mut self, decision: FencingDecision, now: Instant) -> Result<FencingToken, NotIssued> {
        let is_holding = self.phase == Phase::Holding && self.is_won(now);
        if !is_holding {
            self.fail_as_too_late();
            return Err(NotIssued::TooLate);
        }
        let FencingDecision::Agreed(number) = decision else { return Err(NotIssued::Missing) };
        self.fencing.agreed(number);
        self.fencing.next_token().ok_or(NotIssued::Missing)
    }

    /// Returns the indexes of the nodes that are not known to have accepted `number`.
    pub(crate) fn lacking(&self, number: u64) -> impl Iterator<Item = usize> {
        let accepted = Some(Number::Accepted(number));
        self.voters
            .iter()
            .enumerate()
            .filter(move |(_, voter)| voter.remarks.number() != accepted)
            .map(|(index, _)| index)
    }

    /// Why each node has given no number that counts, if it has not.
    pub(crate) fn unnumbered_reasons(&self, now: Instant) -> impl Iterator<Item = Option<NodeError>> {
        self.voters.iter().map(move |voter| {
            let is_numbered = voter.has_accepted();
            (!is_numbered).then(|| voter.reason(now, self.terms.node_timeout).unwrap_or(NodeError::FencingUnavailable))
        })
    }
}
