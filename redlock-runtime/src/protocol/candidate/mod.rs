//! The client's half of the protocol: all that a client knows and decides about one token, without I/O.
//!
//! A [`Candidate`] stands for one attempt to get one lock, under one token, from the first command to the last. It has no
//! socket, reads no clock, wakes nobody and waits for nothing. Whoever drives it (`client/acquisition`) does that.
//!
//! # How to drive it
//!
//! 1. **Make it** with [`Candidate::new`], from the connections that the nodes have now, in [`Phase::Trying`]. A call that acts
//!    for it says with [`want_number`](Candidate::want_number) whether it wants a fencing number.
//! 2. **Commands go out** through a function that the driver passes in, and which is called once for each of them with the
//!    number of the node and what to send. It must be put into the order of the node's connection right then. These methods
//!    send: [`try_at_once`](Candidate::try_at_once), [`next_commands`](Candidate::next_commands),
//!    [`extend`](Candidate::extend), [`renew`](Candidate::renew) and
//!    [`begin_fencing_round`](Candidate::begin_fencing_round); and these send the last command to a node, before which what is
//!    still to come from it must be dropped: [`leave_tainted`](Candidate::leave_tainted),
//!    [`last_commands`](Candidate::last_commands) and [`detach`](Candidate::detach).
//! 3. **Answers come in** through [`answered`](Candidate::answered), for each node in the order of its commands: the
//!    candidate knows what it has asked. After one or more of them comes [`note_proof`](Candidate::note_proof). All answers
//!    that are here are taken in before a command of step 2 is sent.
//! 4. **The rest comes in** through [`claimed`](Candidate::claimed), [`contended`](Candidate::contended),
//!    [`wanted`](Candidate::wanted) and [`revoked`](Candidate::revoked) (wake-ups),
//!    [`connections`](Candidate::connections) (the numbers of the present connections),
//!    [`clock_stepped`](Candidate::clock_stepped) and [`tick`](Candidate::tick) (time). After any of these, and after answers
//!    while it waits, come [`leave_tainted`](Candidate::leave_tainted) and [`next_commands`](Candidate::next_commands).
//! 5. **Try, then wait.** [`tried`](Candidate::tried) says what has become of the first try, which
//!    [`conclude_try`](Candidate::conclude_try) or [`give_up_try`](Candidate::give_up_try) ends. [`wait`](Candidate::wait)
//!    begins to wait; [`wait_outcome`](Candidate::wait_outcome) says whether that is over, and
//!    [`wait_until`](Candidate::wait_until) when to look again at the latest.
//! 6. **Hold.** [`begin`](Candidate::begin) gives the lock to a call, and [`pass`](Candidate::pass) to the next one; or
//!    [`keep`](Candidate::keep) leaves it without one, and [`retake`](Candidate::retake) gives it to the next; and
//!    [`lower`](Candidate::lower) shares it with others, of which the nodes hear by
//!    [`tell_lowered`](Candidate::tell_lowered). The body
//!    may go on until [`held_until`](Candidate::held_until); [`look`](Candidate::look) says when to renew;
//!    [`extension`](Candidate::extension) and [`fencing_decision`](Candidate::fencing_decision) say what has become of rounds
//!    that somebody waits for, and [`issue`](Candidate::issue) gives the number. A lock that was left by another worker
//!    begins with [`adopt`](Candidate::adopt) and an extension, then [`hold`](Candidate::hold).
//! 7. **End** with [`end`](Candidate::end); then take in the answers, keep the token for as long as
//!    [`kept_for`](Candidate::kept_for) says, and send the [`last_commands`](Candidate::last_commands). Or another call goes on:
//!    [`supersede`](Candidate::supersede).
//! 8. **Wake whoever relies on the lock** when [`held_until`](Candidate::held_until) has become earlier, when the lock is
//!    passed on, and when the phase becomes [`Phase::Superseded`] or [`Phase::Ended`].
//!
//! | what happens | where it is decided |
//! |---|---|
//! | a node answers | [`answers`] |
//! | a wake-up, a new connection, a clock step, time | [`events`] |
//! | a node is handed over, and a body begins by that | [`claims`] |
//! | what to ask next, when to yield, when to confirm | [`next`] |
//! | the first try is over | [`trying`] |
//! | a wait ends | [`waiting`] |
//! | who else has the lock, and until when | [`taken`] |
//! | a lease must be renewed, an extension is over | [`renewal`] |
//! | a holder asks for the votes that it lacks | [`winning_back`] |
//! | so few others have a permit that the token may have one, and what counts for it then | [`permits`] |
//! | others may share it from now on | [`lowering`] |
//! | the lock may be passed on inside the process | [`passing`] |
//! | it stays held without a call, for the next one | [`idling`] |
//! | which fencing number counts, and how a token comes to it | [`fencing_number`], [`fencing`] |
//! | the body has used up its time | [`hold_period`] |
//! | the token is given up, kept or left; why it was lost | [`ending`] |
//!
//! # Why it is safe
//!
//! 1. *A lease end that counts belongs to the owner.* A node's lease end is counted from before the command was sent, with
//!    the drift taken off ([`lease`]), and only for answers that say that the token owns the lock there. So the key
//!    outlives it. A claim has one only if it is proven when its expiry was set ([`claims`]).
//! 2. *Only our own yield or release moves a node away before that.* Both are sent by this candidate. From the yield on
//!    nothing counts that was granted before ([`voter`]); one whose answer was cut off taints its node for good. After the
//!    release the phase is [`Phase::Ended`], and nothing counts at all. Who breaks the lock puts another token in its place, which
//!    stays there until the key would have ended, or until this one is dead.
//! 3. *The lock is held while enough lease ends are in the future* ([`valid_until`](Candidate::valid_until)): two quorums
//!    share a node, and that node has one owner.
//! 4. *A token that was released is never used again.* [`Phase::Ended`] has no way out; whoever goes on takes another token.
//!
//! The rules that look as if one could do without them are in [`rules`](super::rules), each with a simulation that fails
//! without it. `docs/protocol.md` has the whole protocol on one page.
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
mod hold_period;
mod idling;
mod in_flight;
mod joining;
mod lease_terms;
mod lowering;
mod next;
mod passing;
mod permits;
mod queue;
mod remarks;
mod renewal;
mod roll;
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
use self::roll::Permit;
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

/// One token on its way to a lock; see the head of this file.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    voters: Box<[Voter]>,
    phase: Phase,
    terms: Arc<LeaseTerms>,
    hold_period: HoldPeriod,
    /// Another worker has left the lock with another token, and this one takes its place.
    adopts: bool,
    /// It wants several names, of which a node may have some.
    has_several: bool,
    fencing: FencingNumber,
    /// The key has to stay taken after the present call.
    is_kept: bool,
    /// The latest moment until which the lock ever was provably ours.
    proven_until: Option<Instant>,
    /// Others want the lock, too: since when this is known.
    contended_since: Option<Instant>,
    /// How many wait for the lock, as a node has told with an extension.
    waiters: u32,
    /// What a token goes by while it waits. Boxed: there are many locks that are held.
    wait: Option<Box<Wait>>,
    /// What somebody has said of the lock.
    said: Said,
    /// What it takes to have a permit, if that is what the token wants. Boxed: there are many locks.
    permit: Option<Box<Permit>>,
}

/// What managers say of a lock by themselves. One byte, because there are many locks; who hears of both has little time left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Nothing,
    /// A body runs under it, for which this token does not wait.
    Busy,
    /// Somebody breaks it, and this token has or had it.
    Broken,
}

/// Where a token is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It takes the lock if it is free everywhere.
    Trying,
    /// It stands in the queues.
    Waiting,
    /// It has, or had, the lock.
    Holding,
    /// It had the lock, and another call of this process has gone on: what the nodes may still say does not count.
    Superseded,
    /// Its last commands were sent: it is dead.
    Ended,
}

impl Candidate {
    /// A token that no node knows yet. `epochs` are the numbers of the connections to the nodes.
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
            terms,
            proven_until: None,
            contended_since: None,
            waiters: 0,
            wait: None,
            said: Said::Nothing,
            permit: None,
        }
    }

    /// The token wants several names, all or none of them.
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

    /// The lock is ours, if it was not before.
    pub(crate) fn hold(&mut self, now: Instant) {
        (self.phase, self.wait) = (Phase::Holding, None);
        self.hold_period.hold(now);
        self.voters.iter_mut().for_each(|voter| voter.held(now));
        // What counts against this token begins now, not when it began to wait.
        self.contended_since = self.contended_since.map(|_| now);
    }

    /// A call has the lock from now on, with options of its own. Returns for how long it is counted on as things are.
    pub(crate) fn begin(&mut self, options: HoldOptions, now: Instant) -> Duration {
        self.hold_period.begin(options, now);
        self.counted_for(now)
    }

    /// A call acts for the token that wants the lock to be idle for so long after it; not at all at zero.
    pub(crate) fn linger(&mut self, linger: Duration) {
        self.hold_period.linger(linger);
    }

    /// Whether the present call wants the lock to be idle after it.
    pub(crate) const fn lingers(&self) -> bool {
        self.hold_period.lingers()
    }

    /// The key must stay taken until `end` at least, whatever the present call has asked for.
    pub(crate) fn keep_until(&mut self, end: Instant) {
        self.hold_period.keep_until(end);
    }

    /// The key of a window is free again when the present call ends.
    pub(crate) const fn reopen_window(&mut self) {
        self.hold_period.reopen_window();
    }

    /// Ends a lock whose lease has run out, for good: an answer that is still to come could otherwise make it good again,
    /// when nobody looks after it any more.
    pub(crate) const fn supersede(&mut self) {
        self.phase = Phase::Superseded;
    }

    /// Whether others want the lock, too, as far as is known.
    pub(crate) const fn is_contended(&self) -> bool {
        self.contended_since.is_some()
    }

    /// How many others wait for the end of the lock, as far as is known: the last node to extend it has said so.
    pub(crate) const fn waiters(&self) -> u32 {
        self.waiters
    }

    /// Whether enough nodes answer, and vote.
    pub(crate) fn is_heard(&self, now: Instant) -> bool {
        let is_heard =
            |voter: &&Voter| voter.remarks.failure().is_none() && !voter.is_late(now, self.terms.node_timeout);
        self.has_quorum(self.voters.iter().filter(is_heard).count())
    }

    /// Returns `true` if nothing but answers that have not come yet keeps the token from a quorum.
    pub(crate) fn lacks_answers(&self) -> bool {
        let may_vote = |voter: &&Voter| {
            let failure = voter.remarks.failure();
            !voter.vote.is_taken()
                && failure.is_none_or(|error| matches!(error, NodeError::TimedOut(_) | NodeError::NoReply))
        };
        self.has_quorum(self.voters.iter().filter(may_vote).count())
    }

    /// Whether no answer is still to come.
    pub(crate) fn is_answered(&self) -> bool {
        self.voters.iter().all(|voter| voter.in_flight.first().is_none())
    }

    /// Whether so many nodes refuse for reasons that do not pass that no others can make up for them.
    pub(crate) fn is_refused(&self) -> bool {
        self.terms.quorum.is_refused(self.voters.iter().filter_map(|voter| voter.remarks.failure()))
    }

    /// Whether enough nodes hold the lock for us, as lease or as claim.
    fn has_votes(&self, now: Instant) -> bool {
        self.has_quorum(self.voters.iter().filter(|voter| voter.is_ours(now, self.terms.node_timeout)).count())
    }

    fn has_quorum(&self, voters: usize) -> bool {
        voters >= self.terms.quorum.needed
    }

    /// The moment until which enough nodes provably hold the lock for us.
    pub(crate) fn valid_until(&self) -> Option<Instant> {
        if matches!(self.phase, Phase::Superseded | Phase::Ended) {
            return None;
        }
        lease::valid_until(&self.voters.iter().filter_map(Voter::lease_end), self.terms.quorum)
    }

    /// The moment until which the present call has the lock.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        self.valid_until().map(|end| self.capped(end))
    }

    /// What the present call may count on, when the nodes hold the lock until `valid_until`.
    fn capped(&self, valid_until: Instant) -> Instant {
        if self.terms.applies(Rule::HoldsAreCapped) { self.hold_period.capped(valid_until) } else { valid_until }
    }

    /// Whether the lock is ours for long enough to be useful.
    pub(crate) fn is_won(&self, now: Instant) -> bool {
        self.valid_until().is_some_and(|end| end >= self.terms.useful_from(now))
    }

    /// Whether the lock is ours by leases that were all heard of since there are enough, or by claims as well.
    fn is_confirmed(&self, now: Instant) -> bool {
        let by_leases = self.fresh_until(|voter| !voter.is_claim());
        by_leases.is_some_and(|end| end >= self.terms.useful_from(now)) || self.is_enterable(now)
    }

    /// The moment until which enough nodes that `count` provably hold the lock for us, and have said so since there are enough.
    fn fresh_until(&self, counts: impl Fn(&Voter) -> bool) -> Option<Instant> {
        let fresh_from = self.fresh_from();
        let fresh = self.voters.iter().filter(|voter| voter.is_fresh(fresh_from) && counts(voter));
        lease::valid_until(&fresh.filter_map(Voter::lease_end), self.terms.quorum)
    }

    /// Whether the present call may not go on with the lock, whatever the nodes say.
    pub(crate) fn has_ended(&self, now: Instant) -> bool {
        matches!(self.phase, Phase::Superseded | Phase::Ended) || self.hold_period.is_used_up(now)
    }

    /// Whether any answer is still to come.
    pub(crate) fn is_awaited(&self) -> bool {
        self.voters.iter().any(Voter::is_awaited)
    }

    /// What the votes mean.
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

    /// Why each node does not count, if it does not.
    pub(crate) fn reasons(&self, now: Instant) -> impl Iterator<Item = Option<NodeError>> {
        self.voters.iter().map(move |voter| voter.reason(now, self.terms.node_timeout))
    }

    /// Since when the present call has had the lock.
    pub(crate) const fn held_since(&self) -> Instant {
        self.hold_period.since()
    }

    /// For how long the lock was provably ours between `since` and `until`.
    pub(crate) fn held_between(&self, since: Instant, until: Instant) -> Duration {
        self.proven_until.map_or(Duration::ZERO, |proven| proven.min(until).since(since))
    }

    /// For how long the present call has had the lock.
    pub(crate) fn held_for(&self, now: Instant) -> Duration {
        self.proven_until.map_or(Duration::ZERO, |proven| self.hold_period.held_for(proven, now))
    }
}
