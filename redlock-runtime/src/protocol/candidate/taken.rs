//! Other owners of the key, as the nodes have reported them: data that is not a lock, or a lease and its end.

use super::Candidate;
use super::voter::Voter;
use crate::error::NodeError;
use crate::protocol::command::Occupant;
use crate::protocol::lease;
use crate::time::clock::Instant;
use std::time::Duration;

impl Candidate {
    /// Records the content of the key at node number `index`, which has refused the lock.
    pub(crate) fn found(&mut self, index: usize, occupant: Occupant, now: Instant) {
        let Some(voter) = self.voters.get_mut(index).filter(|voter| voter.vote.is_taken()) else { return };
        match occupant {
            Occupant::Unknown => {}
            Occupant::Nobody => voter.taken_for(Some(Duration::ZERO), now),
            Occupant::Data => voter.hints.set_failure(Some(NodeError::HoldsData)),
            Occupant::Lock(left) => voter.taken_for(Some(left), now),
        }
    }

    /// Returns the time from which enough nodes can be ours, if the leases of other tokens are not renewed. Returns
    /// `None` if too few nodes have reported.
    pub(crate) fn free_from(&self, now: Instant) -> Option<Instant> {
        let voters = self.voters.iter();
        lease::free_from(&voters.filter_map(|voter: &Voter| voter.free_from(now)), self.terms.quorum)
    }
}
