//! Agreement on the fencing number of a candidate.
//!
//! 1. A ballot is proposed together with the request for the lock, at no cost. Every node that grants the lock replies
//!    if it has accepted the ballot.
//! 2. If a quorum has accepted the same ballot, it is the number of the token.
//! 3. If some nodes have refused, or the lock came without a reply to a ballot, a separate round proposes a larger
//!    ballot with an extension. One round suffices, unless another process has proposed a ballot in between.
//! 4. The number is valid only if the lock is still held when the nodes have agreed.

use super::fencing_number::{Fence, FencingDecision};
use super::next::Outgoing;
use super::voter::Voter;
use super::{Candidate, Phase};
use crate::error::NodeError;
use crate::protocol::command::Number;
use crate::protocol::fencing_token::FencingToken;
use crate::time::clock::Instant;

/// Reason that a held lock has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotIssued {
    /// Too few nodes have accepted a ballot.
    Missing,
    /// Lease has expired first. Another token may succeed.
    TooLate,
}

impl Candidate {
    /// Sets if the call that acts for the token is fenced.
    pub(crate) const fn set_fencing_wanted(&mut self, is_fenced: bool) {
        self.fencing.want(is_fenced);
    }

    /// Returns the fencing token of the present call, if the number of the token is valid for one more call.
    pub(crate) fn next_token(&mut self) -> Option<FencingToken> {
        self.fencing.next_token()
    }

    /// Returns the fencing token that the acting call has, if it is fenced.
    pub(crate) fn present_token(&self) -> Option<FencingToken> {
        self.fencing.present_token()
    }

    /// Proposes another ballot to every node that accepts further commands.
    pub(crate) fn begin_fencing_round(&mut self, now: Instant, mut send: impl FnMut(Outgoing)) {
        // Old replies would cause another round even if too few nodes answer, or no larger ballot can be drawn.
        self.voters.iter_mut().for_each(|voter| voter.hints.set_number(None));
        self.ask_all(self.extension_verb(self.terms.ttl), Some(Fence::New), now, &mut send);
    }

    /// Returns the decision that follows from the replies of the nodes.
    pub(crate) fn fencing_decision(&self, now: Instant) -> FencingDecision {
        let counts = |voter: &&Voter| voter.lease_end().is_some_and(|end| now < end);
        self.fencing.decide(
            self.voters.iter().filter(counts).filter_map(|voter| voter.hints.number()),
            self.terms.quorum.needed,
        )
    }

    /// Returns `true` if the outstanding answers may make a quorum accept one ballot.
    pub(crate) fn may_agree(&self) -> bool {
        let (awaited, answered): (Vec<_>, Vec<_>) = self.voters.iter().partition(|voter| voter.is_awaited());
        let alike = |one: &Voter| {
            answered.iter().filter(|other| other.has_accepted() && other.hints.number() == one.hints.number()).count()
        };
        awaited.len() + answered.iter().map(|voter| alike(voter)).max().unwrap_or(0) >= self.terms.quorum.needed
    }

    /// Returns `true` if a quorum may accept a larger ballot. A node cannot if it has refused with a number for which
    /// `is_in_reach` returns `false`.
    pub(crate) fn can_accept_larger_ballot(&self, is_in_reach: impl Fn(u64) -> bool) -> bool {
        let may_accept = |voter: &&Voter| !matches!(voter.hints.number(), Some(Number::Refused { largest }) if !is_in_reach(largest));
        self.voters.iter().filter(may_accept).count() >= self.terms.quorum.needed
    }

    /// Returns the first fencing token of the agreed number.
    ///
    /// # Errors
    /// [`NotIssued`] if there is no number, or the lock is not held any longer.
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
            .filter(move |(_, voter)| voter.hints.number() != accepted)
            .map(|(index, _)| index)
    }

    /// Returns for each node the reason that it has given no valid number, if it has not.
    pub(crate) fn unnumbered_reasons(&self, now: Instant) -> impl Iterator<Item = Option<NodeError>> {
        self.voters.iter().map(move |voter| {
            let is_numbered = voter.has_accepted();
            (!is_numbered).then(|| voter.reason(now, self.terms.node_timeout).unwrap_or(NodeError::FencingUnavailable))
        })
    }
}
