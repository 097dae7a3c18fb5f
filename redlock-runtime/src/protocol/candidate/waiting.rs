//! Course and end of a wait.
//!
//! A wait is won with leases that were confirmed since there are enough of them, or at most one node timeout before. An
//! older lease is confirmed first. If the clock of its server was set forward since, the key is gone, and only an
//! answer shows that.
//!
//! [`tick`](Candidate::tick) detects silence of the nodes as time passes; this module decides that it ends the wait.
//! The caller chooses the token that continues after a lost majority.

use super::voter::Voter;
use super::wait::Wait;
use super::{Candidate, HolderNews, Phase};
use crate::protocol::rules::Rule;
use crate::protocol::timing::{LONGEST_CONFIRMATION, LONGEST_SILENCE, POLL};
use crate::time::clock::Instant;
use std::time::Duration;

/// End of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Held,
    /// Another call of this process has taken over.
    Superseded,
    /// Too many nodes are tainted or away for the token to win. Another token with the same place in the queues can.
    LostMajority,
    /// The time limit is over.
    TimedOut,
    /// Too few nodes answer.
    Silent,
    Closed,
}

impl Candidate {
    /// Begins to wait in the queues, for which the nodes are asked at `from`, unless the token waits already or has the
    /// lock.
    pub(crate) fn wait(&mut self, from: Instant) {
        if self.phase == Phase::Trying {
            self.phase = Phase::Waiting;
            let listening_by = from.after(self.terms.node_timeout);
            let poll_at = self.poll_again(from);
            let wait = Wait { voted_since: None, silent_since: None, listening_by, poll_at, most_ahead: 0 };
            self.wait = Some(Box::new(wait));
        }
    }

    /// Advances the time of a waiting token: it may have to ask again, and detects silent nodes.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.wait.as_ref().is_some_and(|wait| wait.poll_at <= now) {
            let poll_at = self.poll_again(now);
            self.wait.iter_mut().for_each(|wait| wait.poll_at = poll_at);
        }
        // A node that abstains represents the holders that it may have forgotten: the token waits for them.
        let present = self.voters.iter().filter(|voter| voter.is_present(now, self.terms.node_timeout)).count();
        let is_silent = !self.has_quorum(present) || self.has_votes(now);
        if let Some(wait) = &mut self.wait {
            wait.silent_since = if is_silent { wait.silent_since.or(Some(now)) } else { None };
        }
    }

    /// Makes every node due for a question now. Returns the time at which all must be asked again.
    fn poll_again(&mut self, now: Instant) -> Instant {
        self.voters.iter_mut().for_each(|voter| voter.schedule_recheck(now));
        // The time varies by a quarter in each direction, so that waiters that began together do not ask together
        // forever.
        now.after(POLL.mul_f64(0.75 + 0.5 * fastrand::f64()))
    }

    /// Records the time since which enough nodes have voted, even if an answer of one of them is late now.
    pub(super) fn count_votes(&mut self, now: Instant) {
        let votes = self.voters.iter().filter(|voter| voter.vote.is_granted() && !voter.is_tainted).count();
        let is_voted = self.phase == Phase::Waiting && self.has_quorum(votes);
        if let Some(wait) = &mut self.wait {
            let since = wait.voted_since.filter(|since| now.since(*since) < LONGEST_CONFIRMATION).unwrap_or(now);
            wait.voted_since = is_voted.then_some(since);
        }
    }

    /// Returns the time since which leases must have been confirmed before a wait can end with them.
    ///
    /// It stays constant while there are enough votes. Otherwise, nodes that answer at different times would never be
    /// confirmed together.
    pub(super) fn fresh_from(&self) -> Option<Instant> {
        let voted_since = self.wait.as_ref()?.voted_since;
        let since = voted_since.filter(|_| self.terms.applies(Rule::OldLeasesAreConfirmed));
        since.map(|since| since.before(self.terms.node_timeout))
    }

    /// Returns the outcome of the wait if the events so far have decided it. If the lock is won, it is held from here
    /// on.
    pub(crate) fn wait_outcome(&mut self, now: Instant) -> Option<Waited> {
        match self.phase {
            // The manager was shut down, and has left the queues for this token.
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

    /// Returns the time of the next check at the latest. Without a `limit`, the token also waits through a silence of
    /// the nodes, but not through permanent refusals.
    ///
    /// # Errors
    /// End of the wait, if it is over.
    pub(crate) fn wait_until(&self, limit: Option<Instant>, now: Instant) -> Result<Instant, Waited> {
        let is_silent = self.silence(now) >= LONGEST_SILENCE;
        match limit {
            Some(limit) if limit <= now || self.said == HolderNews::Busy => Err(Waited::TimedOut),
            _ if is_silent && (limit.is_some() || self.is_refused()) => Err(Waited::Silent),
            limit => Ok(limit.into_iter().fold(self.next_event(now), Instant::min)),
        }
    }

    /// Returns `true` if a waiting token has an action due before `until`, without further events.
    pub(crate) fn has_event_before(&self, until: Instant, now: Instant) -> bool {
        self.phase == Phase::Waiting && (self.next_event(now) < until || self.has_votes(now) && self.is_confirmed(now))
    }

    /// Returns the time for which too few nodes have taken part, or have answered too late for a lease.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        self.wait.as_ref().and_then(|wait| wait.silent_since).map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Returns `true` if too many nodes report other owners, after they were asked again, for the token to own the
    /// lock.
    fn has_been_broken(&self, now: Instant) -> bool {
        let is_taken = |voter: &&Voter| voter.vote.is_taken() && !voter.is_due(now) && !voter.is_awaited();
        self.voters.len() - self.voters.iter().filter(is_taken).count() < self.terms.quorum.needed
    }

    /// Returns `true` if too few nodes count for this token at present because some never will again. Another token can
    /// have a majority, and must not wait for nodes that may be away for long.
    pub(super) fn has_lost_its_majority(&self, now: Instant) -> bool {
        let counts = |voter: &&Voter| !voter.is_tainted && voter.is_present(now, self.terms.node_timeout);
        if self.is_revoked() && self.has_been_broken(now) {
            // The process that breaks the lock waits for the end of this token.
            return true;
        }
        let is_tainted = self.voters.iter().any(|voter| voter.is_tainted);
        is_tainted && !self.has_quorum(self.voters.iter().filter(counts).count())
    }
}
