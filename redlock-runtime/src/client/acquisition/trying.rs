//! A call takes up the acquisition that it finds, and tries to get the lock at once.

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

/// The node that is asked first has so large a part of the time of a try for its answer: a half, which is two round trips or more. At
/// 4, a healthy one that is far away is not waited for; at 1, no time is left for the others.
const FIRST_ANSWERS_IN: u32 = 2;

/// What a call finds when its turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakenUp {
    /// No node has been asked yet.
    Fresh,
    /// The token stands in the queues.
    Waiting,
    /// The lock was passed on. `is_passable`: enough of the lease is left for a whole body.
    Held { is_passable: bool },
    /// Another call of this process has gone on without it.
    Superseded,
    /// The manager was shut down, and the token was released.
    Ended,
}

/// What has a key that a try has found taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupied {
    /// So many nodes have data there that nobody will ever give it back.
    Data,
    /// Others have it, with so much left of their lease as far as is known.
    Lock { left: Option<Duration> },
}

impl Acquisition {
    /// A call acts for the token from now on, and has `wanted` the lock.
    pub(crate) fn take_up(&self, wanted: Wanted) -> TakenUp {
        let mut state = self.state();
        if state.candidate.claimed_until().is_some() {
            // The call before has begun by claims, and may have ended before the answers to their extensions were taken in.
            state.take_in(self.shared.clock);
        }
        state.candidate.want_number(wanted.is_fenced);
        state.candidate.keep_afterwards(wanted.is_kept);
        state.candidate.linger(wanted.linger);
        match state.candidate.phase() {
            Phase::Trying => TakenUp::Fresh,
            Phase::Waiting => TakenUp::Waiting,
            Phase::Holding => TakenUp::Held { is_passable: state.candidate.is_passable(self.now()) },
            Phase::Superseded => TakenUp::Superseded,
            Phase::Ended => TakenUp::Ended,
        }
    }

    /// Whether what is left of the lease is worth having.
    pub(crate) fn is_useful(&self) -> bool {
        self.state().candidate.is_won(self.now())
    }

    /// Finds out what has the key, when a try has found it taken: a plain `SET` tells neither whether that is data nor how long
    /// a lease lasts.
    ///
    /// For a key that was a lock lately the question is spared, and what the nodes have told then is good enough.
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
        // As many as are needed for a lock are too many for a refusal.
        let answers = gather(asked, self.node_timeout(), |answers| without_data(answers) >= needed).await;
        // A vote that is here and was not taken in would make what its node has said of no use.
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

    /// The same of several names: which of them is taken, nobody has said, but under any of them may be data.
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
        // As for one name.
        self.state().take_in(self.shared.clock);
        for (index, occupant) in answers.iter().enumerate() {
            if let Some(occupant) = occupant {
                self.state().candidate.found(index, *occupant, self.now());
            }
        }
        if self.is_refused() { Occupied::Data } else { Occupied::Lock { left: self.taken_for() } }
    }

    /// How much is left of the lease of whoever else has the lock, as far as is known: another call of this process, or the
    /// owners of which the nodes have told.
    pub(crate) fn taken_for(&self) -> Option<Duration> {
        let now = self.now();
        let free_from = || self.state().candidate.free_from(now);
        let left = self.lease_left().or_else(|| free_from().map(|at| at.since(now)));
        // What is over says nothing of whoever has the lock now.
        left.filter(|left| !left.is_zero())
    }

    /// Returns the token, and the line of its present call, if it holds the lock.
    pub(crate) fn held_as(&self) -> Option<LockHolder> {
        let state = self.state();
        let site = || self.shared.sites.get(state.present.as_ref()?.site)?.site().line;
        (state.candidate.phase() == Phase::Holding).then(|| LockHolder::new(*self.token(), site()))
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

    /// Asks every node for the lock at once, and waits for the votes, no longer than `patience` and not for a node that
    /// cannot change the outcome.
    pub(crate) async fn try_at_once(&self, now: Instant, patience: Duration) -> Verdict {
        self.send_try(now);
        self.tried(patience).await
    }

    /// Asks every node for the lock.
    pub(crate) fn send_try(&self, now: Instant) {
        self.send_at(now, None, |candidate, sender| candidate.try_at_once(now, |out| sender.send(out)));
    }

    /// Sends what is to be asked together, with the ballot that was proposed before. Returns the one that is.
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

    /// Asks one node for the lock, and the others only if that one does not refuse it. Those who want the same names meet there, and
    /// not at each node, where some would get these and some those. It all takes no longer than `patience`.
    ///
    /// A node that takes longer than a part of that is not waited for.
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

    /// The node that is asked first: the same for all processes that have the same nodes, in whatever order they name them, as
    /// long as they can ask it.
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

    /// What comes of a try, by what the nodes have said of it within `patience`.
    ///
    /// A manager that closes ends the wait, which may be longer for silent nodes than a shutdown should.
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

/// How many nodes have said that the key holds no data.
fn without_data(answers: &[Option<Occupant>]) -> usize {
    answers.iter().flatten().filter(|occupant| matches!(occupant, Occupant::Nobody | Occupant::Lock(_))).count()
}

/// The token that is `named` so many times as are `needed`.
fn agreed<'a>(named: &(impl Iterator<Item = &'a OwnerToken> + Clone), needed: usize) -> Option<OwnerToken> {
    named.clone().find(|token| named.clone().filter(|other| other == token).count() >= needed).copied()
}
