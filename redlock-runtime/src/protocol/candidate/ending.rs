//! The end of a token: what every node is told last, and why a lock was lost.
//!
//! 1. The phase becomes [`Phase::Ended`]; from here on nothing counts, and it happens once.
//! 2. The answers that are here are taken in: they say which nodes may know the token.
//! 3. Every node that may know it, by what it has answered and by what it has not, is sent its last command: a release, or
//!    an extension where a least hold is not over. It follows all other commands about the token on the same connection.
//! 4. What is still to come from these nodes is of no use, and must be dropped *before* the last command is sent: a script
//!    that a server had lost is sent again for as long as somebody waits for its answer, and would be executed after it.

use super::voter::Voter;
use super::{Candidate, Phase};
use crate::protocol::last_command::LastCommand;
use crate::protocol::lease;
use crate::protocol::quorum::Verdict;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::mem;
use std::time::Duration;

/// Why a lock is not held any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It was given back.
    Released,
    /// It was held for as long as it may be.
    MaxHold,
    /// The nodes say that it is not ours.
    Taken,
    /// So they say, and somebody has said that he breaks it.
    Revoked,
    /// It could not be renewed in time.
    NotRenewed,
    /// It was not to be renewed.
    Expired,
}

impl Candidate {
    /// The token ends. `false` when it had ended before, and nothing is left to do.
    pub(crate) fn end(&mut self) -> bool {
        mem::replace(&mut self.phase, Phase::Ended) != Phase::Ended
    }

    /// For how much longer the key must stay taken after the end, in whole milliseconds.
    pub(crate) fn kept_for(&self, now: Instant) -> Option<Duration> {
        let rest = self.hold_period.rest(now).filter(|_| self.terms.applies(Rule::WindowsAreKept));
        rest.map(lease::whole_millis)
    }

    /// Tells every node that may know the token of its end, after [`end`](Self::end) and the answers that were here.
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

    /// Whether a command about the token may still be executed behind its last one, as it was cut off.
    pub(crate) fn was_cut(&self) -> bool {
        self.terms.applies(Rule::WhoWasCutListens) && self.voters.iter().any(|voter| voter.was_cut)
    }

    /// Leaves the lock with the nodes that have it, for whoever puts another token in the place of this one. Elsewhere the
    /// token leaves the queue, and is given back should it still arrive.
    pub(crate) fn detach(&mut self, now: Instant, leave: impl FnMut(usize, LastCommand)) {
        self.phase = Phase::Ended;
        self.leave_where(now, |voter| !voter.vote.is_granted(), leave);
    }

    /// For how long nodes may have a token that was detached: one ttl, or two, because an extension may still be on its way
    /// and be executed when the first one is nearly over.
    pub(crate) fn detached_for(&self) -> Duration {
        let longest = 2 * self.terms.ttl;
        longest + lease::drift(longest, self.terms.drift_factor)
    }

    /// Gives back what the nodes may have of the token that are `unwanted`.
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

    fn release(&self, now: Instant) -> LastCommand {
        let is_heard_about = self.terms.applies(Rule::WhoWasCutListens);
        LastCommand { is_heard_about, ..LastCommand::release(self.terms.claim(), self.terms.ttl, now) }
    }

    /// Why the present call has lost the lock.
    pub(crate) fn loss(&self, now: Instant) -> Loss {
        let is_proven = self.held_until().is_some_and(|end| now < end);
        if self.phase == Phase::Ended {
            Loss::Released
        } else if self.hold_period.is_used_up(now) {
            Loss::MaxHold
        } else if is_proven || self.is_taken() || self.is_broken() {
            // What was proven can only be over because the nodes say so.
            if self.is_revoked() { Loss::Revoked } else { Loss::Taken }
        } else if self.hold_period.renews() {
            Loss::NotRenewed
        } else {
            Loss::Expired
        }
    }

    /// Whether so many nodes say that the lock is not ours that it cannot be.
    pub(super) fn is_taken(&self) -> bool {
        self.verdict() == Verdict::Contended
    }

    /// Whether somebody says that he breaks the lock, and a node that the lock is not ours. It need not be so many nodes as for
    /// [`is_taken`](Self::is_taken): a lock that stood on just enough votes is lost with the first of them.
    fn is_broken(&self) -> bool {
        self.is_revoked() && self.voters.iter().any(|voter| voter.vote.is_taken())
    }

    /// The nodes that said that the lock is not ours, and know nothing of the token.
    pub(crate) fn known_taken(&self) -> usize {
        let is_taken = |voter: &&Voter| voter.vote.is_taken() && !voter.may_know();
        self.voters.iter().filter(is_taken).count()
    }
}
