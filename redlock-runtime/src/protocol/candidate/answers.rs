//! Meaning of one node's answer.
//!
//! 1. A grant is a vote, and a lease that is counted from the send. A grant that was requested before a yield proves
//!    nothing.
//! 2. A refusal removes the node's vote, and sets the time of the next question. If a claim has overtaken the refusal,
//!    it means nothing: their order is not known, and an extension finds the truth.
//! 3. A node that abstains grants nothing. But it extends a lease that it has proven before, and that has not ended.
//! 4. If a command inside a script fails, the script may have written before. The node is sent a release, as after
//!    silence. Nothing of the script is executed later, so a yield does not taint the node.
//! 5. Silence does not change an existing vote. The command may have left a footprint at the node, and an unanswered
//!    yield taints it.

use super::Phase;
use super::footprint::Footprint;
use super::in_flight::{InFlight, Kind};
use super::vote::Vote;
use super::voter::Voter;
use crate::error::NodeError;
use crate::protocol::command::{Answer, Number, Reply};
use crate::protocol::rules::{Rule, Rules};
use crate::protocol::timing::{AFTER_FAILURE, EXPIRY_MARGIN, MOST_RANKS, PER_RANK};
use crate::time::clock::Instant;
use std::time::Duration;

impl Voter {
    /// Processes the answer to the oldest command. Returns `true` if other tokens want the lock, too. A grant is a
    /// proof only if it `counts`.
    pub(super) fn answered(&mut self, answer: Answer, phase: Phase, counts: bool, now: Instant) -> bool {
        let Some(mut sent) = self.in_flight.pop() else { return false };
        sent.is_void |= !counts;
        match answer {
            Ok(reply) => {
                self.hints.set_failure(None);
                let is_contended = is_contended(&reply);
                self.replied(&sent, &reply, phase, now);
                is_contended
            }
            Err(error) => {
                self.failed(&sent, error, phase, now);
                false
            }
        }
    }

    fn replied(&mut self, sent: &InFlight, reply: &Reply, phase: Phase, now: Instant) {
        match *reply {
            Reply::Granted { smaller, number } => {
                self.is_beaten |= smaller;
                self.granted(sent, number, now);
            }
            Reply::Entered { .. } => self.granted(sent, None, now),
            Reply::Extended { number, .. } => self.granted(sent, number, now),
            Reply::Found { left, .. } => self.found(sent, left, phase, now),
            Reply::Kept => {
                self.vote = if self.vote.is_granted() { self.vote } else { Vote::CLAIM };
                if phase == Phase::Holding {
                    self.confirm_at(now);
                }
                // `wanted_by` was set after the yield was sent, so it is more recent than this reply.
                self.is_beaten = false;
            }
            Reply::Queued { left, rank } => {
                self.footprint = Footprint::Queue;
                if !sent.is_overtaken {
                    let pause = PER_RANK * rank.min(MOST_RANKS);
                    self.lose(expiry(left, now, self.rules).map(|at| at.after(pause)));
                    self.taken_for(left, now);
                }
            }
            Reply::Yielded { left } => {
                self.footprint = Footprint::Queue;
                self.lose(if sent.is_overtaken { Some(now) } else { expiry(left, now, self.rules) });
                self.taken_for(left, now);
            }
            // The reply is about the admission lock. The token keeps what it has at the node.
            Reply::NotOwner if sent.kind == Kind::Take => {
                self.footprint = self.footprint.max(Footprint::Key);
                if !self.vote.is_granted() {
                    self.lose(self.recheck_at);
                }
            }
            Reply::Taken | Reply::NotOwner => {
                // Only a release removes a token from a queue.
                if self.footprint != Footprint::Queue {
                    self.footprint = Footprint::None;
                }
                // The reply to the first try may arrive after the token has begun to wait. The node must then still be
                // asked for a place in the queue.
                self.lose(if *reply == Reply::NotOwner { Some(now) } else { self.recheck_at });
            }
            Reply::Released | Reply::Unfinished { .. } | Reply::Revoked { .. } | Reply::Raised => {}
        }
    }

    fn granted(&mut self, sent: &InFlight, number: Option<Number>, now: Instant) {
        self.footprint = self.footprint.max(Footprint::Key);
        if sent.is_void {
            return;
        }
        let counts_from_send = self.rules.apply(Rule::ValidityFromTheSend);
        let end = if counts_from_send { sent.lease_end } else { now.after(sent.lease_end.since(sent.sent)) };
        self.heard_at = Some(now);
        self.numbered(number, self.lease_end().is_some_and(|end| now < end));
        self.vote = Vote::Granted { lease_end: self.vote.lease_end().map_or(end, |before| before.max(end)) };
    }

    /// Processes the reply of a node that has the token, but abstains because it may have forgotten others. It has
    /// granted nothing to others while its proven lease for this token lasted, and no other token relies on its later
    /// grants.
    fn found(&mut self, sent: &InFlight, left: Duration, phase: Phase, now: Instant) {
        let is_proven = self.lease_end().is_some_and(|end| now < end) && self.rules.apply(Rule::ProvenLeasesGoOn);
        if is_proven || !self.rules.apply(Rule::FindingProvesNothing) {
            self.granted(sent, None, now);
        } else {
            self.failed(sent, NodeError::RecentlyRestarted(left), phase, now);
        }
    }

    /// Records that another token, or no token, owns the lock at the node.
    fn lose(&mut self, recheck_at: Option<Instant>) {
        self.change_vote(Vote::TAKEN);
        self.recheck_at = recheck_at;
    }

    /// Records that another token owns the lock at the node, and that its lease ends after `left`.
    pub(super) fn taken_for(&mut self, left: Option<Duration>, now: Instant) {
        self.vote = Vote::Taken { until: left.map(|left| now.after(left)) };
    }

    fn failed(&mut self, sent: &InFlight, error: NodeError, phase: Phase, now: Instant) {
        let is_unknown = error.may_have_been_executed();
        self.was_cut |= is_unknown;
        if is_unknown && sent.kind == Kind::Yield && self.rules.apply(Rule::CutYieldTaints) {
            self.is_tainted = true;
        }
        let abstains = if let NodeError::RecentlyRestarted(left) = error { Some(left) } else { None };
        // A given lease stays valid. But a claim at a node that abstains is void. A waiting token must not count on a
        // node that cannot be asked, because another node may be free.
        let is_open = phase == Phase::Waiting && abstains.is_none() && self.rules.apply(Rule::SilentVotesAreOpen);
        if self.vote == Vote::Open || is_open || (abstains.is_some() && self.vote.lease_end().is_none()) {
            self.vote = Vote::Failed;
        }
        let is_in_part = error.is_raised() && self.rules.apply(Rule::FailedScriptsAreReleased);
        if is_unknown || is_in_part || abstains.is_some() {
            self.footprint = self.footprint.max(Footprint::of(sent.kind));
        }
        // A holder asks again with its next renewal or with a new connection. If the new connection came before this
        // failure, `recheck_at` is already set for it.
        let pause = abstains.or((phase != Phase::Holding).then_some(AFTER_FAILURE));
        self.recheck_at = pause.map_or(self.recheck_at, |pause| Some(now.after(pause)));
        self.hints.set_failure(Some(error));
    }
}

/// Returns the time at which the key of a holder, whose lease ends after `left`, has certainly expired.
fn expiry(left: Option<Duration>, now: Instant, rules: Rules) -> Option<Instant> {
    left.filter(|_| rules.apply(Rule::TtlTimer)).map(|left| now.after(left + EXPIRY_MARGIN))
}

/// Returns `true` if a reply shows that other tokens want the lock, too.
const fn is_contended(reply: &Reply) -> bool {
    match reply {
        Reply::Granted { smaller, .. } => *smaller,
        Reply::Extended { waiters, .. } | Reply::Found { waiters, .. } => *waiters > 0,
        Reply::Taken | Reply::Queued { .. } | Reply::Yielded { .. } => true,
        Reply::Entered { .. }
        | Reply::Kept
        | Reply::Released
        | Reply::Unfinished { .. }
        | Reply::Revoked { .. }
        | Reply::Raised
        | Reply::NotOwner => false,
    }
}
