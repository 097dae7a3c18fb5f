//! Resuming an acquisition for a call, and trying to get the lock at once.

use super::Acquisition;
use super::state::Sender;
use crate::client::gather::gather;
use crate::client::node_handle::NodeHandle;
use crate::client::timers::timeout;
use crate::error::{LockHolder, NodeError};
use crate::lock::OwnerToken;
use crate::node::{BoxFuture, Status};
use crate::protocol::candidate::{Candidate, Phase, Wanted};
use crate::protocol::command::Occupant;
use crate::protocol::lease::whole_millis;
use crate::protocol::quorum::Verdict;
use crate::time::ballot_clock::Ballot;
use crate::time::clock::Instant;
use crate::time::wait_until::wait_until;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Part of the time of a try in which the first node must answer: a half, which is at least two round trips. At 4: a
/// healthy but distant node is not waited for. At 1: no time is left for the others.
const FIRST_ANSWERS_IN: u32 = 2;

/// State of an acquisition at the beginning of a call's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResumeState {
    /// No node has been asked yet.
    Fresh,
    /// The token waits in the queues.
    Waiting,
    /// The lock was passed on. `is_passable`: enough of the lease is left for a whole body.
    Held { is_passable: bool },
    /// Another call of this process has taken over.
    Superseded,
    /// The manager was shut down, and the token was released.
    Ended,
}

/// Content of a key that a try has found taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupied {
    /// Too many nodes have data there, which is never released.
    Data,
    /// Other tokens own the key. `left` is the rest of their lease, as far as it is known.
    Lock { left: Option<Duration> },
}

impl Acquisition {
    /// Resumes the acquisition for a call that has `wanted` the lock.
    pub(crate) fn resume(&self, wanted: Wanted) -> ResumeState {
        let mut state = self.state();
        if state.candidate.claimed_until().is_some() {
            // The previous call has begun on claims, and may have ended before the answers to their extensions were
            // processed.
            state.take_in(self.shared.clock);
        }
        state.candidate.set_fencing_wanted(wanted.is_fenced);
        state.candidate.set_kept_afterwards(wanted.is_kept);
        state.candidate.linger(wanted.linger);
        match state.candidate.phase() {
            Phase::Trying => ResumeState::Fresh,
            Phase::Waiting => ResumeState::Waiting,
            Phase::Holding => ResumeState::Held { is_passable: state.candidate.is_passable(self.now()) },
            Phase::Superseded => ResumeState::Superseded,
            Phase::Ended => ResumeState::Ended,
        }
    }

    /// Returns `true` if the rest of the lease is useful.
    pub(crate) fn is_useful(&self) -> bool {
        self.state().candidate.is_won(self.now())
    }

    /// Finds the content of a key that a try has found taken. The reply to a plain `SET` shows neither data nor the
    /// rest of a lease.
    ///
    /// If the key was known to be a lock recently, no question is needed, and the earlier reply is used.
    pub(crate) async fn find_occupant(&self) -> Occupied {
        if self.subject.has_several() {
            return self.find_data().await;
        }
        let (known_locks, known_leases) = (&self.shared.known_locks, &self.shared.known_leases);
        if known_locks.contains(self.key(), self.now()) {
            return Occupied::Lock { left: known_leases.left(self.key(), self.now()) };
        }
        let asked = self.shared.nodes.iter().map(|node| node.node().occupant_of(self.key())).collect();
        let needed = self.shared.quorum.needed;
        // If a quorum of nodes has no data, there are too few others for a refusal.
        let answers = gather(asked, self.node_timeout(), |answers| without_data(answers) >= needed).await;
        // A vote that has arrived must be processed first, because it would overwrite the findings.
        self.state().take_in(self.shared.clock);
        for (index, occupant) in answers.iter().enumerate() {
            if let Some(occupant) = occupant {
                self.state().candidate.found(index, *occupant, self.now());
            }
        }
        if self.is_refused() {
            return Occupied::Data;
        }
        let (left, now) = (self.taken_for(), self.now());
        known_locks.note(self.key(), now);
        known_leases.note_until(self.key(), now.after(left.unwrap_or_default()));
        Occupied::Lock { left }
    }

    /// Finds data under any of several names. The nodes have not reported which name is taken.
    async fn find_data(&self) -> Occupied {
        let asked = self.shared.nodes.iter().map(|node| {
            let asked: Vec<_> = self.subject.wanted().map(|(key, _)| node.node().occupant_of(key)).collect();
            let data_or_unknown: BoxFuture<'static, _> = Box::pin(async move {
                for answer in asked {
                    if answer.await == Occupant::Data {
                        return Occupant::Data;
                    }
                }
                Occupant::Unknown
            });
            data_or_unknown
        });
        let needed = self.shared.quorum.needed;
        let is_known = |answers: &[Option<Occupant>]| {
            answers.iter().flatten().filter(|occupant| **occupant != Occupant::Data).count() >= needed
        };
        let answers = gather(asked.collect(), self.node_timeout(), is_known).await;
        // See `find_occupant`.
        self.state().take_in(self.shared.clock);
        for (index, occupant) in answers.iter().enumerate() {
            if let Some(occupant) = occupant {
                self.state().candidate.found(index, *occupant, self.now());
            }
        }
        if self.is_refused() { Occupied::Data } else { Occupied::Lock { left: self.taken_for() } }
    }

    /// Returns the rest of the present owner's lease, as far as it is known: of another call of this process, or of the
    /// owners that the nodes have reported.
    pub(crate) fn taken_for(&self) -> Option<Duration> {
        let now = self.now();
        let free_from = || self.state().candidate.free_from(now);
        let left = self.lease_left().or_else(|| free_from().map(|at| at.since(now)));
        // An expired lease shows nothing about the present owner.
        left.filter(|left| !left.is_zero())
    }

    /// Returns the token, and the line of its present call, if it holds the lock and its lease has not ended.
    pub(crate) fn held_as(&self) -> Option<LockHolder> {
        // A guard that was leaked stays in the local queue.
        self.lease_left().filter(|left| !left.is_zero())?;
        let state = self.state();
        let site = || self.shared.sites.get(state.present.as_ref()?.site)?.site().line;
        Some(LockHolder::new(*self.token(), site()))
    }

    /// Returns the exclusive holder of the lock, if a quorum of nodes names the same one. The nodes are asked once, for no longer than
    /// a node timeout. Of several names, each may have another holder: returns one of those.
    pub(crate) async fn find_holder(&self) -> Option<OwnerToken> {
        let nodes = self.shared.nodes.iter();
        let asked = nodes.map(|node| {
            let asked: Vec<_> = self.subject.wanted().map(|(key, _)| node.node().holder_of(key)).collect();
            let holders: BoxFuture<'static, _> = Box::pin(async move {
                let mut holders = Vec::with_capacity(asked.len());
                for holder in asked {
                    holders.push(holder.await);
                }
                holders
            });
            holders
        });
        let (needed, names) = (self.shared.quorum.needed, self.subject.wanted().count());
        let holder = |answers: &[Option<Vec<Option<OwnerToken>>>]| {
            let of_name = |name: usize| answers.iter().flatten().filter_map(move |holders| holders.get(name)?.as_ref());
            (0..names).find_map(|name| agreed(&of_name(name), needed).filter(|holder| holder != self.token()))
        };
        let answers = gather(asked.collect(), self.node_timeout(), |answers| holder(answers).is_some()).await;
        holder(&answers)
    }

    /// Asks every node for the lock at once, and waits for the votes, for at most `patience`. It never waits for a node
    /// that cannot change the outcome.
    pub(crate) async fn try_at_once(&self, now: Instant, patience: Duration) -> Verdict {
        self.send_try(now);
        self.tried(patience).await
    }

    /// Asks every node for the lock.
    pub(crate) fn send_try(&self, now: Instant) {
        self.send_at(now, None, |candidate, sender| candidate.try_at_once(now, |out| sender.send(out)));
    }

    /// Sends commands together, with the ballot that was proposed before. Returns the proposed ballot.
    fn send_at(
        &self,
        now: Instant,
        ballot: Option<Ballot>,
        ask: impl FnOnce(&mut Candidate, &mut Sender<'_>),
    ) -> Option<Ballot> {
        let mut state = self.state();
        state.take_in(self.shared.clock);
        let (candidate, mut sender) = state.parts(&self.shared, &self.subject, now);
        sender.propose(ballot);
        ask(candidate, &mut sender);
        sender.proposed()
    }

    /// Asks one node for the lock, and the others only if that node does not refuse it. Competing calls for the same
    /// names meet at this node. At all nodes, they would split the votes. The whole try takes at most `patience`.
    ///
    /// If the node takes longer than a part of that, the call does not wait for it.
    pub(crate) async fn try_one_first(&self, patience: Duration) -> Verdict {
        let begun = self.now();
        let Some(first) = self.first_node() else { return self.try_at_once(begun, patience).await };
        let ballot =
            self.send_at(begun, None, |candidate, sender| candidate.try_at(first, begun, |out| sender.send(out)));
        let window = self.node_timeout().min(patience) / FIRST_ANSWERS_IN;
        let answer = self.verdict(|candidate| candidate.tried_at(first), window).await;
        if answer == Some(Verdict::Contended) {
            return Verdict::Contended;
        }
        if self.shared.is_closed() {
            return Verdict::Open;
        }
        let now = self.now();
        self.send_at(now, ballot, |candidate, sender| candidate.try_at_others(first, now, |out| sender.send(out)));
        self.tried(patience.saturating_sub(now.since(begun))).await
    }

    /// Returns the node that is asked first. It is the same for all processes with the same nodes, in any order, as
    /// long as they can reach it.
    fn first_node(&self) -> Option<usize> {
        let can_vote = |node: &NodeHandle| {
            node.node().status_of(self.subject.route()) == Status::Up && node.node().abstains_for().is_none()
        };
        let nodes = self.shared.nodes.iter().enumerate().filter(|(_, node)| can_vote(node));
        nodes.min_by_key(|(_, node)| node.label()).map(|(index, _)| index)
    }

    /// Waits for the votes.
    pub(crate) async fn tried(&self, patience: Duration) -> Verdict {
        let verdict = self.verdict(Candidate::tried, patience).await;
        let (mut state, now) = (self.state(), self.now());
        match verdict {
            Some(verdict) => state.candidate.conclude_try(verdict, now),
            None => state.candidate.give_up_try(&NodeError::TimedOut(whole_millis(patience))),
        }
    }

    /// Returns the outcome of a try, from the answers within `patience`.
    ///
    /// A closing manager ends the wait, because silent nodes would delay the shutdown.
    async fn verdict(&self, of: impl Fn(&Candidate) -> Verdict, patience: Duration) -> Option<Verdict> {
        let mut closed = pin!(wait_until(&self.shared.changed, || self.shared.is_closed()));
        let votes = poll_fn(|cx| {
            let is_closed = closed.as_mut().poll(cx).is_ready();
            let mut state = self.state();
            state.poll(cx, self.shared.clock);
            match of(&state.candidate) {
                Verdict::Open if !is_closed => Poll::Pending,
                verdict => Poll::Ready(verdict),
            }
        });
        timeout(patience, votes).await.ok()
    }
}

/// Returns the number of nodes where the key contains no data.
fn without_data(answers: &[Option<Occupant>]) -> usize {
    answers.iter().flatten().filter(|occupant| matches!(occupant, Occupant::Nobody | Occupant::Lock(_))).count()
}

/// Returns the token that `named` contains at least `needed` times.
fn agreed<'a>(named: &(impl Iterator<Item = &'a OwnerToken> + Clone), needed: usize) -> Option<OwnerToken> {
    named.clone().find(|token| named.clone().filter(|other| other == token).count() >= needed).copied()
}
