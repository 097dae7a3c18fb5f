//! Who else has the lock, as far as the nodes have told: data that is no lock, or a lease and when it ends.

use super::Candidate;
use super::voter::Voter;
use crate::error::NodeError;
use crate::protocol::command::Occupant;
use crate::protocol::lease;
use crate::time::clock::Instant;
use std::time::Duration;

impl Candidate {
    /// What node number `index` has under the key of a lock that it has not given.
    pub(crate) fn found(&mut self, index: usize, occupant: Occupant, now: Instant) {
        let Some(voter) = self.voters.get_mut(index).filter(|voter| voter.vote.is_taken()) else { return };
        match occupant {
            Occupant::Unknown => {}
            Occupant::Nobody => voter.taken_for(Some(Duration::ZERO), now),
            Occupant::Data => voter.remarks.set_failure(Some(NodeError::HoldsData)),
            Occupant::Lock(left) => voter.taken_for(Some(left), now),
        }
    }

    /// From when on enough nodes can be ours, if those that others have are not renewed. `None` when too few have told.
    pub(crate) fn free_from(&self, now: Instant) -> Option<Instant> {
        let voters = self.voters.iter();
        lease::free_from(&voters.filter_map(|voter: &Voter| voter.free_from(now)), self.terms.quorum)
    }
}
