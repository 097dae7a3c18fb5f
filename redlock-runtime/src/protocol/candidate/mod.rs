//! Client's half of the protocol: the state and the decisions of a client about one token, without I/O.
//!
//! A [`Candidate`] is one attempt to get one lock, under one token, from the first command to the last. It has no
//! socket, reads no clock, wakes no task and never blocks. Its *driver* (`client/acquisition`) does that.
//!
//! # How to drive it
//!
//! 1. **Create it** with [`Candidate::new`], from the present connections to the nodes, in [`Phase::Trying`]. A call
//!    that acts for it requests a fencing number with [`set_fencing_wanted`](Candidate::set_fencing_wanted).
//! 2. **Commands go out** through a function that the driver passes in. It is called once for each command, with the
//!    number of the node. The command must enter the queue of the node's connection at once. These methods send:
//!    [`try_at_once`](Candidate::try_at_once), [`next_commands`](Candidate::next_commands),
//!    [`extend`](Candidate::extend), [`renew`](Candidate::renew) and
//!    [`begin_fencing_round`](Candidate::begin_fencing_round). Three methods send the last command to a node:
//!    [`leave_tainted`](Candidate::leave_tainted), [`last_commands`](Candidate::last_commands) and
//!    [`detach`](Candidate::detach). The driver must first discard all outstanding answers of that node.
//! 3. **Answers come in** through [`answered`](Candidate::answered), for each node in the order of its commands: the
//!    candidate knows its own questions. After one or more answers, call [`note_proof`](Candidate::note_proof). Before
//!    a command of step 2 is sent, all answers that have arrived must be processed.
//! 4. **Other events come in** through [`claimed`](Candidate::claimed), [`contended`](Candidate::contended),
//!    [`wanted`](Candidate::wanted) and [`revoked`](Candidate::revoked) (wake-ups),
//!    [`connections`](Candidate::connections) (the numbers of the present connections),
//!    [`on_clock_step`](Candidate::on_clock_step) and [`tick`](Candidate::tick) (time). After each of them, and after
//!    answers while the candidate waits, call [`leave_tainted`](Candidate::leave_tainted) and
//!    [`next_commands`](Candidate::next_commands).
//! 5. **Try, then wait.** [`tried`](Candidate::tried) returns the outcome of the first try, which
//!    [`conclude_try`](Candidate::conclude_try) or [`give_up_try`](Candidate::give_up_try) ends.
//!    [`wait`](Candidate::wait) begins to wait. [`wait_outcome`](Candidate::wait_outcome) returns the end of the wait,
//!    and [`wait_until`](Candidate::wait_until) the time of the next check at the latest.
//! 6. **Hold.** [`begin`](Candidate::begin) gives the lock to a call, and [`pass`](Candidate::pass) to the next call.
//!    [`keep`](Candidate::keep) leaves it idle, and [`retake`](Candidate::retake) gives an idle lock to the next call.
//!    [`lower`](Candidate::lower) downgrades it to a shared lock, and [`send_downgrade`](Candidate::send_downgrade) informs
//!    the nodes. The body may run until [`held_until`](Candidate::held_until); [`look`](Candidate::look) returns the
//!    time of the next renewal. [`extension`](Candidate::extension) and
//!    [`fencing_decision`](Candidate::fencing_decision) return the results of rounds that a caller waits for, and
//!    [`issue`](Candidate::issue) returns the number. A lock that another worker has left begins with
//!    [`adopt`](Candidate::adopt) and an extension, followed by [`hold`](Candidate::hold).
//! 7. **End** with [`end`](Candidate::end). Process the answers, keep the token for the time that
//!    [`kept_for`](Candidate::kept_for) returns, and send the [`last_commands`](Candidate::last_commands). If another
//!    call continues instead, use [`supersede`](Candidate::supersede).
//! 8. **Wake the users of the lock** when [`held_until`](Candidate::held_until) has become earlier, when the lock is
//!    passed on, and when the phase becomes [`Phase::Superseded`] or [`Phase::Ended`].
//!
//! | event or decision | module |
//! |---|---|
//! | a node answers | [`answers`] |
//! | a wake-up, a new connection, a clock step, time | [`events`] |
//! | a node is handed over, and a body begins on that claim | [`claims`] |
//! | the next question, a yield, a confirmation | [`next`] |
//! | the end of the first try | [`trying`] |
//! | the end of a wait | [`waiting`] |
//! | the tokens that own nodes, and the ends of their leases | [`taken`] |
//! | a due renewal, the end of an extension | [`renewal`] |
//! | a holder asks for missing votes | [`winning_back`] |
//! | admission to a permit, and its votes afterwards | [`permits`] |
//! | a downgrade to a shared lock | [`lowering`] |
//! | a pass to the next call of the process | [`passing`] |
//! | an idle lock without a call | [`idling`] |
//! | agreement on a fencing number | [`fencing_number`], [`fencing`] |
//! | the end of the body's time | [`hold_period`] |
//! | release, keeping, or detaching of the token; the reason of a loss | [`ending`] |
//!
//! # Why it is safe
//!
//! 1. *A lease end that counts belongs to the owner.* A node's lease end is counted from before the command was sent,
//!    with the drift subtracted ([`lease`]). It counts only if the reply confirms that the token owns the lock there.
//!    So the key outlives the lease. A claim has a lease end only if the start of its expiry is proven ([`claims`]).
//! 2. *Only our own yield or release moves a node away before that.* This candidate sends both. From the yield on,
//!    earlier grants do not count ([`voter`]); a yield whose answer was cut off taints its node permanently. After the
//!    release, the phase is [`Phase::Ended`], and nothing counts at all. A process that breaks the lock replaces its
//!    token with another one. That one stays until the key would have expired, or until this token is dead.
//! 3. *The lock is held while enough lease ends are in the future* ([`valid_until`](Candidate::valid_until)): two
//!    quorums share a node, and that node has one owner.
//! 4. *A released token is never used again.* No transition leaves [`Phase::Ended`]; a call that continues takes
//!    another token.
//!
//! [`rules`](super::rules) lists the rules that look optional, each with a simulation that fails without it.
//! `docs/protocol.md` describes the whole protocol.
//!
//! Source: "Distributed Locks with Redis", the Redis documentation, for the majority and its validity. The queues, the
//! direct hand-over and yielding are ours.

mod answers;
mod claims;
#[cfg(test)]
mod conformance;
mod ending;
mod events;
mod fencing;
mod fencing_number;
mod footprint;
mod hints;
mod hold_period;
mod holder_list;
mod idling;
mod in_flight;
mod joining;
mod lease_terms;
mod lowering;
mod next;
mod passing;
mod permits;
mod queue;
mod renewal;
mod taken;
#[cfg(test)]
mod tests;
mod trying;
mod vote;
mod voter;
mod wait;
mod waiting;
mod winning_back;

pub(crate) use self::ending::Loss;
pub(crate) use self::fencing::NotIssued;
pub(crate) use self::fencing_number::{Fence, FencingDecision};
pub(crate) use self::lease_terms::LeaseTerms;
pub(crate) use self::next::Outgoing;
pub(crate) use self::passing::Wanted;
pub(crate) use self::permits::{Counted, Entering, PATIENCE_BEHIND, turn};
pub(crate) use self::queue::Queue;
pub(crate) use self::renewal::{Extension, Look};
pub(crate) use self::waiting::Waited;

use self::fencing_number::FencingNumber;
use self::hold_period::HoldPeriod;
use self::holder_list::Permit;
use self::vote::Vote;
use self::voter::Voter;
use self::wait::Wait;
use crate::error::NodeError;
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::lease;
use crate::protocol::quorum::{Tally, Verdict};
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::sync::Arc;
use std::time::Duration;

/// One token on its way to a lock; see the module docs.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Candidate {
    voters: Box<[Voter]>,
    phase: Phase,
    terms: Arc<LeaseTerms>,
    hold_period: HoldPeriod,
    /// Set if another worker has left the lock with another token, and this token takes its place.
    adopts: bool,
    /// Set if the token wants several names, of which a node may have some.
    has_several: bool,
    fencing: FencingNumber,
    /// Set if the key has to stay taken after the present call.
    is_kept: bool,
    /// Set if another call of this process waits for the lock.
    is_followed: bool,
    /// Latest time until which the lock was ever provably ours.
    proven_until: Option<Instant>,
    /// Time since which other tokens are known to want the lock.
    contended_since: Option<Instant>,
    /// Estimated number of waiters, see [`waiters`](Self::waiters).
    waiters: u32,
    /// State that exists only while the token waits. Boxed: there are many held locks.
    wait: Option<Box<Wait>>,
    /// Message that another manager has sent about the lock.
    said: HolderNews,
    /// State of a permit, if the token wants one. Boxed: there are many locks.
    permit: Option<Box<Permit>>,
}

/// Message of another manager about a lock. One byte, because there are many locks. After both messages, the token has
/// little time left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HolderNews {
    Nothing,
    /// A body runs under the lock, and this token does not wait for it.
    Busy,
    /// The lock is being broken, and this token owns or owned it.
    Broken,
}

/// Phase of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Token takes the lock if it is free everywhere.
    Trying,
    /// Token waits in the queues.
    Waiting,
    /// Token has, or had, the lock.
    Holding,
    /// Token had the lock, and another call of this process has taken over: later replies of the nodes do not count.
    Superseded,
    /// Last commands were sent: the token is dead.
    Ended,
}

impl Candidate {
    /// Creates a token that no node knows yet. `epochs` are the numbers of the connections to the nodes.
    pub(crate) fn new(epochs: impl Iterator<Item = u64>, terms: impl Into<Arc<LeaseTerms>>, now: Instant) -> Self {
        let terms = terms.into();
        Self {
            voters: epochs.map(|epoch| Voter::new(epoch, terms.rules)).collect(),
            phase: Phase::Trying,
            hold_period: HoldPeriod::new(terms.ttl, now),
            adopts: false,
            has_several: false,
            fencing: FencingNumber::new(terms.rules),
            is_kept: false,
            is_followed: false,
            terms,
            proven_until: None,
            contended_since: None,
            waiters: 0,
            wait: None,
            said: HolderNews::Nothing,
            permit: None,
        }
    }

    /// Records that the token wants several names, all or none of them.
    pub(crate) const fn for_several(mut self) -> Self {
        self.has_several = true;
        self
    }

    pub(crate) fn terms(&self) -> &LeaseTerms {
        &self.terms
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Records that the token owns the lock now, if it did not before.
    pub(crate) fn hold(&mut self, now: Instant) {
        self.waiters = self.wait.as_ref().map_or(self.waiters, |wait| wait.most_ahead.max(self.waiters));
        (self.phase, self.wait) = (Phase::Holding, None);
        self.hold_period.hold(now);
        self.voters.iter_mut().for_each(|voter| voter.held(now));
        self.plan_confirmations(now);
        // Limits that depend on waiters are counted from now, not from the start of the wait.
        self.contended_since = self.contended_since.map(|_| now);
    }

    /// Gives the lock to a call, with its own options. Returns the time within which the lock needs a check.
    pub(crate) fn begin(&mut self, options: HoldOptions, now: Instant) -> Duration {
        self.hold_period.begin(options, now);
        self.check_within(now)
    }

    /// Sets the time for which the acting call wants the lock to stay idle after it; zero if not at all.
    pub(crate) fn linger(&mut self, linger: Duration) {
        self.hold_period.linger(linger);
    }

    /// Returns `true` if the present call wants the lock to stay idle after it.
    pub(crate) const fn lingers(&self) -> bool {
        self.hold_period.lingers()
    }

    /// Keeps the key taken until `end` at least, whatever the present call has requested.
    pub(crate) fn keep_until(&mut self, end: Instant) {
        self.hold_period.keep_until(end);
    }

    /// Frees the key of a window when the present call ends.
    pub(crate) const fn reopen_window(&mut self) {
        self.hold_period.reopen_window();
    }

    /// Permanently ends a lock whose lease has expired. Otherwise, a later answer could revive the lock when no task
    /// watches it any longer.
    pub(crate) const fn supersede(&mut self) {
        self.phase = Phase::Superseded;
    }

    /// Returns `true` if other tokens are known to want the lock.
    pub(crate) const fn is_contended(&self) -> bool {
        self.contended_since.is_some()
    }

    /// Returns the number of tokens that wait for the end of the lock: as the last extended node has reported it, or the
    /// number of tokens that were ahead of this one, because about as many come behind it on a contended key.
    pub(crate) const fn waiters(&self) -> u32 {
        self.waiters
    }

    /// Returns `true` if enough nodes answer and vote.
    pub(crate) fn is_heard(&self, now: Instant) -> bool {
        let is_heard = |voter: &&Voter| voter.hints.failure().is_none() && !voter.is_late(now, self.terms.node_timeout);
        self.has_quorum(self.voters.iter().filter(is_heard).count())
    }

    /// Returns `true` if only outstanding answers keep the token from a quorum.
    pub(crate) fn lacks_answers(&self) -> bool {
        let may_vote = |voter: &&Voter| {
            let failure = voter.hints.failure();
            !voter.vote.is_taken()
                && failure.is_none_or(|error| matches!(error, NodeError::TimedOut(_) | NodeError::NoReply))
        };
        self.has_quorum(self.voters.iter().filter(may_vote).count())
    }

    /// Returns `true` if no answer is outstanding.
    pub(crate) fn is_answered(&self) -> bool {
        self.voters.iter().all(|voter| voter.in_flight.first().is_none())
    }

    /// Returns `true` if the nodes that refuse for permanent reasons leave too few others for a quorum.
    pub(crate) fn is_refused(&self) -> bool {
        self.terms.quorum.is_refused(self.voters.iter().filter_map(|voter| voter.hints.failure()))
    }

    /// Returns `true` if enough nodes hold the lock for us, as a lease or as a claim.
    fn has_votes(&self, now: Instant) -> bool {
        self.has_quorum(self.voters.iter().filter(|voter| voter.is_ours(now, self.terms.node_timeout)).count())
    }

    fn has_quorum(&self, voters: usize) -> bool {
        voters >= self.terms.quorum.needed
    }

    /// Returns the time until which enough nodes provably hold the lock for us.
    pub(crate) fn valid_until(&self) -> Option<Instant> {
        if matches!(self.phase, Phase::Superseded | Phase::Ended) {
            return None;
        }
        lease::valid_until(&self.voters.iter().filter_map(Voter::lease_end), self.terms.quorum)
    }

    /// Returns the time until which the present call has the lock.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        self.valid_until().map(|end| self.capped(end))
    }

    /// Returns the end that the present call can rely on, if the nodes hold the lock until `valid_until`.
    fn capped(&self, valid_until: Instant) -> Instant {
        if self.terms.applies(Rule::HoldsAreCapped) { self.hold_period.capped(valid_until) } else { valid_until }
    }

    /// Returns `true` if the lock is ours for long enough to be useful.
    pub(crate) fn is_won(&self, now: Instant) -> bool {
        self.valid_until().is_some_and(|end| end >= self.terms.useful_from(now))
    }

    /// Returns `true` if the token owns the lock with leases that were all confirmed since there are enough of them, or
    /// with claims.
    fn is_confirmed(&self, now: Instant) -> bool {
        let by_leases = self.fresh_until(|voter| !voter.is_claim());
        by_leases.is_some_and(|end| end >= self.terms.useful_from(now)) || self.is_enterable(now)
    }

    /// Returns the time until which enough nodes provably hold the lock for us, of those that `count` and were
    /// confirmed since there are enough of them.
    fn fresh_until(&self, counts: impl Fn(&Voter) -> bool) -> Option<Instant> {
        let fresh_from = self.fresh_from();
        let fresh = self.voters.iter().filter(|voter| voter.is_fresh(fresh_from) && counts(voter));
        lease::valid_until(&fresh.filter_map(Voter::lease_end), self.terms.quorum)
    }

    /// Returns `true` if the present call may not continue with the lock, whatever the nodes reply.
    pub(crate) fn has_ended(&self, now: Instant) -> bool {
        matches!(self.phase, Phase::Superseded | Phase::Ended) || self.hold_period.is_used_up(now)
    }

    /// Returns `true` if any answer is outstanding.
    pub(crate) fn is_awaited(&self) -> bool {
        self.voters.iter().any(Voter::is_awaited)
    }

    /// Returns the meaning of the votes.
    fn verdict(&self) -> Verdict {
        let mut tally = Tally::default();
        for voter in &self.voters {
            match voter.vote {
                Vote::Open => tally.open += 1,
                Vote::Granted { .. } | Vote::Claimed { .. } => tally.granted += 1,
                Vote::Taken { .. } => tally.taken += 1,
                Vote::Failed => tally.failed += 1,
            }
        }
        tally.verdict(self.terms.quorum)
    }

    /// Returns for each node the reason that it does not count, if it does not.
    pub(crate) fn reasons(&self, now: Instant) -> impl Iterator<Item = Option<NodeError>> {
        self.voters.iter().map(move |voter| voter.reason(now, self.terms.node_timeout))
    }

    /// Returns the time at which the present call got the lock.
    pub(crate) const fn held_since(&self) -> Instant {
        self.hold_period.since()
    }

    /// Returns the duration for which the lock was provably ours between `since` and `until`.
    pub(crate) fn held_between(&self, since: Instant, until: Instant) -> Duration {
        self.proven_until.map_or(Duration::ZERO, |proven| proven.min(until).since(since))
    }

    /// Returns the duration for which the present call has had the lock.
    pub(crate) fn held_for(&self, now: Instant) -> Duration {
        self.proven_until.map_or(Duration::ZERO, |proven| self.hold_period.held_for(proven, now))
    }
}
