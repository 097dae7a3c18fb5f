//! End of a token: the last command to every node, and the reason of a loss.
//!
//! 1. The phase becomes [`Phase::Ended`]. This happens once, and from here on nothing counts.
//! 2. The answers that have arrived are processed, to learn which nodes may know the token.
//! 3. Every node that may know the token, by its answers or by missing answers, is sent a last command. This is a
//!    release, or an extension while a `min_hold` is not over. It follows all other commands about the token on the
//!    same connection.
//! 4. Outstanding answers of these nodes are useless, and must be discarded *before* the last command is sent. If a
//!    server has lost its scripts, a command is sent again as long as a caller waits for its answer. It would be
//!    executed after the last command.

use super::voter::Voter;
use super::{Candidate, Phase};
use crate::protocol::last_command::LastCommand;
use crate::protocol::lease;
use crate::protocol::quorum::Verdict;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::mem;
use std::time::Duration;

/// Reason that a lock is not held any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Lock was released.
    Released,
    /// Lock was held for its `max_hold`.
    MaxHold,
    /// Nodes report that the token does not own the lock.
    Taken,
    /// Nodes report that the token does not own the lock, and a break was announced.
    Revoked,
    /// Lock could not be renewed in time.
    NotRenewed,
    /// Lock without renewal has expired.
    Expired,
}

impl Candidate {
    /// Ends the token. Returns `false` if it had ended before, and nothing is left to do.
    pub(crate) fn end(&mut self) -> bool {
        mem::replace(&mut self.phase, Phase::Ended) != Phase::Ended
    }

    /// Returns the time for which the key must stay taken after the end, in whole milliseconds.
    pub(crate) fn kept_for(&self, now: Instant) -> Option<Duration> {
        let rest = self.hold_period.rest(now).filter(|_| self.terms.applies(Rule::WindowsAreKept));
        rest.map(lease::whole_millis)
    }

    /// Sends the last command to every node that may know the token, after [`end`](Self::end) and after the arrived
    /// answers were processed.
    pub(crate) fn last_commands(&mut self, now: Instant, mut send: impl FnMut(usize, LastCommand)) {
        let (kept_for, release, is_contended) = (self.kept_for(now), self.release(now), self.is_contended());
        for (index, voter) in self.voters.iter_mut().enumerate() {
            let may_know = voter.may_know();
            voter.in_flight.clear();
            if may_know {
                let is_expected = voter.vote.is_granted();
                let ends_messages = is_contended && !voter.was_cut;
                let last = LastCommand { is_expected, ends_messages, ..release };
                send(index, kept_for.filter(|_| is_expected).map_or(last, |rest| last.keeping(rest, now)));
            }
        }
    }

    /// Returns `true` if a command about the token was cut off and may be executed behind its last one.
    pub(crate) fn was_cut(&self) -> bool {
        self.terms.applies(Rule::WhoWasCutListens) && self.voters.iter().any(|voter| voter.was_cut)
    }

    /// Leaves the lock at the nodes that have it, for a later token that takes its place. At other nodes, the token
    /// leaves the queue, and is released if a command still arrives. Claims that were not confirmed yet become leases,
    /// with a command that is repeated until it is answered.
    pub(crate) fn detach(&mut self, now: Instant, mut leave: impl FnMut(usize, LastCommand)) {
        self.phase = Phase::Ended;
        let keep = LastCommand { is_expected: true, ..self.release(now) }.keeping(self.terms.ttl, now);
        for (index, _) in self.voters.iter().enumerate().filter(|(_, voter)| voter.is_unconfirmed_claim()) {
            leave(index, keep);
        }
        self.leave_where(now, |voter| !voter.vote.is_granted(), leave);
    }

    /// Returns the time for which nodes may have a detached token: two `ttl`. An extension may still be on its way and
    /// be executed when the first `ttl` is nearly over.
    pub(crate) fn detached_for(&self) -> Duration {
        let longest = 2 * self.terms.ttl;
        longest + lease::drift(longest, self.terms.drift_factor)
    }

    /// Releases the token at the `unwanted` nodes that may know it.
    pub(super) fn leave_where(
        &mut self,
        now: Instant,
        unwanted: impl Fn(&Voter) -> bool,
        mut leave: impl FnMut(usize, LastCommand),
    ) {
        let release = self.release(now);
        for (index, voter) in self.voters.iter_mut().enumerate() {
            if unwanted(voter) && voter.may_know() {
                voter.released();
                leave(index, release);
            }
        }
    }

    /// Removes and returns the indexes of the nodes that may have some names of the detached token whose place this one takes. Without
    /// all names, they are useless to this token, and keep others out until they expire.
    pub(crate) fn take_leftovers(&mut self) -> impl Iterator<Item = usize> {
        let voters = self.voters.iter_mut().enumerate();
        voters.filter_map(|(index, voter)| std::mem::take(&mut voter.has_leftovers).then_some(index))
    }

    fn release(&self, now: Instant) -> LastCommand {
        let is_heard_about = self.terms.applies(Rule::WhoWasCutListens);
        LastCommand { is_heard_about, ..LastCommand::release(self.terms.claim(), self.terms.ttl, now) }
    }

    /// Returns the reason that the present call has lost the lock.
    pub(crate) fn loss(&self, now: Instant) -> Loss {
        let is_proven = self.held_until().is_some_and(|end| now < end);
        if self.phase == Phase::Ended {
            Loss::Released
        } else if self.hold_period.is_used_up(now) {
            Loss::MaxHold
        } else if is_proven || self.is_taken() || self.is_broken() {
            // A proven lock can only be over because the nodes report that.
            if self.is_revoked() { Loss::Revoked } else { Loss::Taken }
        } else if self.hold_period.renews() {
            Loss::NotRenewed
        } else {
            Loss::Expired
        }
    }

    /// Returns `true` if too many nodes report another owner for the token to own the lock.
    pub(super) fn is_taken(&self) -> bool {
        self.verdict() == Verdict::Contended
    }

    /// Returns `true` if a break was announced, and at least one node reports another owner. Fewer nodes suffice than
    /// for [`is_taken`](Self::is_taken): a lock with just enough votes is lost with the first of them.
    fn is_broken(&self) -> bool {
        self.is_revoked() && self.voters.iter().any(|voter| voter.vote.is_taken())
    }

    /// Returns the number of nodes that report another owner and know nothing of the token.
    pub(crate) fn known_taken(&self) -> usize {
        let is_taken = |voter: &&Voter| voter.vote.is_taken() && !voter.may_know();
        self.voters.iter().filter(is_taken).count()
    }
}
