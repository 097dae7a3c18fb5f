//! How a wait goes on and ends.
//!
//! A wait is won by leases that were heard of since there are enough of them, or a node timeout before. One that is older is
//! confirmed first: should the clock of its server have been set forward meanwhile, the key is gone, and nothing but an
//! answer tells it.
//!
//! What counts as silence of the nodes is found in [`tick`](Candidate::tick), as time passes; that it ends the wait is
//! decided here. Which token goes on when this one has lost its majority is up to the caller.

use super::voter::Voter;
use super::wait::Wait;
use super::{Candidate, Phase, Said};
use crate::protocol::rules::Rule;
use crate::protocol::timing::{LONGEST_CONFIRMATION, LONGEST_SILENCE, POLL};
use crate::time::clock::Instant;
use std::time::Duration;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Held,
    /// Another call of this process has gone on without it.
    Superseded,
    /// So many nodes are tainted or away that the token cannot win any more; another one, with the same place in the
    /// queues, can.
    LostMajority,
    /// The wait is over.
    TimedOut,
    /// Too few nodes answer.
    Silent,
    Closed,
}

impl Candidate {
    /// Begins to stand in the queues, for which the nodes are asked at `from`, unless it does already or has the lock.
    pub(crate) fn wait(&mut self, from: Instant) {
        if self.phase == Phase::Trying {
            self.phase = Phase::Waiting;
            let listening_by = from.after(self.terms.node_timeout);
            let wait = Wait { voted_since: None, silent_since: None, listening_by, poll_at: self.poll_again(from) };
            self.wait = Some(Box::new(wait));
        }
    }

    /// Time passes for a waiting token: it may have to ask again, and finds out whether the nodes are silent.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.wait.as_ref().is_some_and(|wait| wait.poll_at <= now) {
            let poll_at = self.poll_again(now);
            self.wait.iter_mut().for_each(|wait| wait.poll_at = poll_at);
        }
        // A node that abstains stands for the holders that it may have forgotten: they are waited for.
        let present = self.voters.iter().filter(|voter| voter.is_present(now, self.terms.node_timeout)).count();
        let is_silent = !self.has_quorum(present) || self.has_votes(now);
        if let Some(wait) = &mut self.wait {
            wait.silent_since = if is_silent { wait.silent_since.or(Some(now)) } else { None };
        }
    }

    /// Every node is to be asked now. Returns when all are to be asked again.
    fn poll_again(&mut self, now: Instant) -> Instant {
        self.voters.iter_mut().for_each(|voter| voter.ask_again(now));
        // Spread by a quarter in each direction, so that those who came together do not ask together for ever.
        now.after(POLL.mul_f64(0.75 + 0.5 * fastrand::f64()))
    }

    /// Takes note of since when enough nodes have voted, whether or not one of them is late with an answer by now.
    pub(super) fn count_votes(&mut self, now: Instant) {
        let votes = self.voters.iter().filter(|voter| voter.vote.is_granted() && !voter.is_tainted).count();
        let is_voted = self.phase == Phase::Waiting && self.has_quorum(votes);
        if let Some(wait) = &mut self.wait {
            let since = wait.voted_since.filter(|since| now.since(*since) < LONGEST_CONFIRMATION).unwrap_or(now);
            wait.voted_since = is_voted.then_some(since);
        }
    }

    /// Leases that were heard of before this have to be confirmed before a wait ends by them.
    ///
    /// It does not move on as long as there are enough votes: otherwise nodes that answer at different times would never be
    /// confirmed all together.
    pub(super) fn fresh_from(&self) -> Option<Instant> {
        let voted_since = self.wait.as_ref()?.voted_since;
        let since = voted_since.filter(|_| self.terms.applies(Rule::OldLeasesAreConfirmed));
        since.map(|since| since.before(self.terms.node_timeout))
    }

    /// Whether the wait is over by what has come in. Where the lock is won, it is held from here on.
    pub(crate) fn wait_outcome(&mut self, now: Instant) -> Option<Waited> {
        match self.phase {
            // The manager was shut down, and has left the queues for us.
            Phase::Ended => return Some(Waited::Closed),
            Phase::Superseded => return Some(Waited::Superseded),
            Phase::Trying | Phase::Waiting | Phase::Holding => {}
        }
        self.count_votes(now);
        if self.is_confirmed(now) {
            self.hold(now);
            return Some(Waited::Held);
        }
        self.has_lost_its_majority(now).then_some(Waited::LostMajority)
    }

    /// When to look again at the latest, if nothing comes in before. Without a `limit`, a silence of the nodes is waited
    /// through as well; but not one that has another reason than that nodes are away, and does not pass by itself.
    ///
    /// # Errors
    /// How the wait has ended, when it is time.
    pub(crate) fn wait_until(&self, limit: Option<Instant>, now: Instant) -> Result<Instant, Waited> {
        let is_silent = self.silence(now) >= LONGEST_SILENCE;
        match limit {
            Some(limit) if limit <= now || self.said == Said::Busy => Err(Waited::TimedOut),
            _ if is_silent && (limit.is_some() || self.is_refused()) => Err(Waited::Silent),
            limit => Ok(limit.into_iter().fold(self.next_event(now), Instant::min)),
        }
    }

    /// Whether a waiting token has something to do before `until`, if nothing more comes in.
    pub(crate) fn has_event_before(&self, until: Instant, now: Instant) -> bool {
        self.phase == Phase::Waiting && self.next_event(now) < until
    }

    /// For how long too few nodes have taken part, or have answered too late for a lease.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        self.wait.as_ref().and_then(|wait| wait.silent_since).map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Whether so many nodes that were asked anew say that others have the lock that it cannot be ours.
    fn has_been_broken(&self, now: Instant) -> bool {
        let is_taken = |voter: &&Voter| voter.vote.is_taken() && !voter.is_due(now) && !voter.is_awaited();
        self.voters.len() - self.voters.iter().filter(is_taken).count() < self.terms.quorum.needed
    }

    /// Whether too few nodes count for this token as things are, because some have ceased to. Another one can have a
    /// majority: it must not wait for nodes that may be away for long.
    pub(super) fn has_lost_its_majority(&self, now: Instant) -> bool {
        let counts = |voter: &&Voter| !voter.is_tainted && voter.is_present(now, self.terms.node_timeout);
        if self.is_revoked() && self.has_been_broken(now) {
            // Whoever breaks the lock waits for the end of this token.
            return true;
        }
        let is_tainted = self.voters.iter().any(|voter| voter.is_tainted);
        is_tainted && !self.has_quorum(self.voters.iter().filter(counts).count())
    }
}
