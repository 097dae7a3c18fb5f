//! Conformance of this client with the client of the exhaustive model.
//!
//! The model (`tests/model`) explores the behavior of another client. These tests drive both clients through every
//! sequence of events up to a depth. The events are answers to the oldest command, wake-ups, and connections that break
//! and come back. The candidate sends the commands of the model's client. After every event:
//!
//! 1. Every lease that the candidate counts, the model counts as well. So whenever the candidate has won, the model
//!    holds.
//! 2. While both wait or hold, their votes are equal. Their tainted nodes are always equal.
//! 3. Every command that the model's client sends is a command that the candidate wanted to send.
//!
//! Five differences are known. In the first, the candidate yields to a holder that the model has forgotten; in the
//! others, it is stricter or later:
//!
//! - It remembers which holder wants a node until it has the vote of that node.
//! - It sends nothing behind an unanswered yield, but the model may yield again. Such states are not followed.
//! - If the connection of a waiter is new, it drops the lease of the node together with the vote, but the model keeps
//!   it. A state that the model holds only because of this lease is not followed.
//! - If it waits and has enough votes, it asks nothing of a node whose connection is new.
//! - It regards a claim as newer than a negative answer that arrives later, so these tests never give such an answer.

use super::voter::Voter;
use super::{Candidate, LeaseTerms, Phase};
use crate::error::NodeError;
use crate::lock::OwnerToken;
use crate::protocol::command::{ProvenClaim, Reply, Verb};
use crate::protocol::quorum::Quorum;
use crate::protocol::rules::{Rule, Rules};
use crate::protocol::timing::CLAIM;
use crate::time::clock::Instant;
use redlock_model::lock::{self as model, Client};
use std::collections::HashSet;
use std::time::Duration;

const TTL: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(5);

/// Event of a client at one node.
#[derive(Clone, Copy, Debug)]
enum Event {
    Answer(model::Reply),
    Granted,
    /// Claim that is proven.
    Proven,
    /// Smaller token waits.
    Contended,
    /// Larger token waits, which holds the lock elsewhere.
    Wanted,
    /// Holder asks for its missing vote.
    WinBack,
    /// Connection breaks, and is replaced.
    NewConnection,
}

/// Both clients, after the same events.
#[derive(Clone)]
struct Pair {
    model: Client,
    candidate: Candidate,
    nodes: usize,
    epochs: Vec<u64>,
    /// Number of connections that may still break.
    cuts: usize,
    /// Nodes at which a claim arrived before an outstanding answer.
    overtaken: Vec<bool>,
}

fn now() -> Instant {
    Instant::from_origin(Duration::from_secs(1))
}

impl Pair {
    /// Creates both clients; the candidate follows the `rules`.
    fn new(nodes: usize, cuts: usize, rules: Rules) -> Self {
        let (node_timeout, quorum) = (TTL / 50, Quorum::of(nodes, 0));
        let terms = LeaseTerms { ttl: TTL, drift_factor: 0.01, node_timeout, quorum, rules };
        let mut candidate = Candidate::new(std::iter::repeat_n(0, nodes), terms, now());
        // The model has no time, and confirms every claim at once.
        candidate.set_followed(now());
        let (epochs, overtaken) = (vec![0; nodes], vec![false; nodes]);
        Self { model: Client::new(nodes, false, None), candidate, nodes, epochs, cuts, overtaken }
    }

    fn trying(mut self) -> Self {
        self.model.try_at_once();
        self.candidate.try_at_once(now(), |_| {});
        self
    }

    fn waiting(mut self) -> Self {
        self.model.wait();
        self.candidate.wait(now());
        self.candidate.next_commands(now(), |_| true, |_| {});
        self
    }

    fn voter(&self, node: usize) -> &Voter {
        &self.candidate.voters[node]
    }

    fn events(&self, node: usize) -> Vec<Event> {
        use model::Reply::{Kept, Lease, LeaseSmaller, No, Yielded};
        let answers: &[model::Reply] = match self.model.unanswered(node).first() {
            Some(model::Command::SetNx | model::Command::Extend | model::Command::WinBack) => &[Lease, No],
            Some(model::Command::Acquire) => &[Lease, LeaseSmaller, No],
            Some(model::Command::Yield | model::Command::YieldTo(_)) => &[Kept, Yielded],
            _ => &[],
        };
        let is_newer = |reply: &&model::Reply| !(self.overtaken[node] && matches!(reply, No | Yielded));
        let mut events: Vec<_> = answers.iter().filter(is_newer).map(|reply| Event::Answer(*reply)).collect();
        if self.model.phase() != model::Phase::Fast {
            events.extend([Event::Granted, Event::Proven, Event::Contended]);
            events.extend((self.model.phase() == model::Phase::Wait).then_some(Event::Wanted));
            events.extend(self.may_win_back(node).then_some(Event::WinBack));
            events.extend((self.cuts > 0).then_some(Event::NewConnection));
        }
        events
    }

    /// Returns `true` if a holder lacks the vote of `node`, and no answer of the node is outstanding.
    fn may_win_back(&self, node: usize) -> bool {
        let known = self.model.known(node);
        let is_idle = self.model.unanswered(node).is_empty() && !self.voter(node).is_awaited();
        self.model.phase() == model::Phase::Hold && !known.vote && !known.tainted && is_idle
    }

    /// Applies `event` to both clients. Returns `true` if the pair should be followed further.
    fn step(&mut self, node: usize, event: Event) -> bool {
        let before: Vec<_> = (0..self.nodes).map(|node| self.model.unanswered(node)).collect();
        let phase = self.model.phase();
        let mut answered = 0;
        match event {
            Event::Answer(answer) => {
                let command = before[node][0];
                self.model.answer(node, Some(answer));
                self.candidate.answered(node, Ok(reply(command, answer)), now());
                answered = 1;
                self.overtaken[node] &= before[node].len() > 1;
            }
            Event::Granted => {
                self.model.push(node, model::Reply::Granted);
                self.candidate.claimed(node, None, now());
                self.overtaken[node] = !before[node].is_empty();
            }
            Event::Proven => {
                self.model.push(node, model::Reply::Proven);
                self.candidate.claimed(node, Some(ProvenClaim { length: CLAIM, from: now() }), now());
                self.overtaken[node] = !before[node].is_empty();
            }
            Event::Contended => {
                self.model.push(node, model::Reply::Contended);
                self.candidate.contended(node, true, now());
            }
            Event::Wanted => {
                self.model.push(node, model::Reply::Wanted(LARGER));
                self.candidate.wanted(node, larger(), now());
            }
            Event::WinBack => {
                self.model.win_back(node);
                // The candidate asks with its next renewal.
                self.candidate.connected(node, now());
            }
            Event::NewConnection => {
                self.model.cut(node);
                self.model.reconnect(node);
                before[node].iter().for_each(|_| self.candidate.answered(node, Err(NodeError::Disconnected), now()));
                self.epochs[node] += 1;
                self.cuts -= 1;
                answered = before[node].len();
                self.overtaken[node] = false;
                self.candidate.connections(self.epochs.iter().copied(), now());
                self.candidate.connected(node, now());
            }
        }
        self.candidate.note_proof();
        self.follow_to_wait(phase);
        if self.model.phase() == model::Phase::Hold && !self.candidate.is_won(now()) {
            return self.is_followed();
        }
        let is_new = matches!(event, Event::NewConnection);
        // Before the candidate holds the lock: it sends the extensions of claims while it waits.
        let is_same = self.send_the_same(node, &before, answered, is_new);
        self.follow_to_hold(phase);
        is_same && self.is_followed()
    }

    fn follow_to_wait(&mut self, before: model::Phase) {
        if before == model::Phase::Fast && self.model.phase() == model::Phase::Wait {
            self.candidate.wait(now());
        }
    }

    fn follow_to_hold(&mut self, before: model::Phase) {
        let is_new = before != model::Phase::Hold && self.model.phase() == model::Phase::Hold;
        if is_new && self.candidate.is_won(now()) {
            self.candidate.hold(now());
        }
    }

    /// Makes the candidate send the commands of the model. Only at `node`, `answered` commands were answered. Returns
    /// `false` if the candidate would not send them, because the answer to a yield is outstanding.
    fn send_the_same(&mut self, node: usize, before: &[Vec<model::Command>], answered: usize, is_new: bool) -> bool {
        for (index, before) in before.iter().enumerate() {
            let known = before.len() - if index == node { answered } else { 0 };
            for command in self.model.unanswered(index).into_iter().skip(known) {
                let Some(verb) = verb(command) else { continue };
                if !self.voter(index).is_open() {
                    return false;
                }
                let has_enough = self.candidate.phase() == Phase::Waiting && self.candidate.has_votes(now());
                if !(is_new && has_enough) {
                    // The model has no renewals apart from extensions.
                    let wants = match self.candidate.wants(index, now()) {
                        Some(Verb::Renew { ttl }) => Some(Verb::Extend { ttl }),
                        wants => wants,
                    };
                    assert_eq!(wants, Some(verb), "node {index}: {self}");
                }
                let mut names = None;
                self.candidate.ask(index, verb, None, now(), &mut |out| names = out.other);
                match command {
                    model::Command::YieldTo(_) => assert_eq!(names, Some(larger()), "node {index}: {self}"),
                    model::Command::Yield => {}
                    _ => assert_eq!(names, None, "node {index}: {self}"),
                }
            }
        }
        true
    }

    fn is_followed(&self) -> bool {
        use model::Phase::{Fast, Hold, Wait};
        let (is_won, phase) = (self.candidate.is_won(now()), self.model.phase());
        assert!(!is_won || phase == Hold, "the candidate has won, and the model has not: {self}");
        if !matches!(phase, Fast | Wait | Hold) {
            // The client has ended, and its state does not matter.
            return false;
        }
        for node in 0..self.nodes {
            let (known, voter) = (self.model.known(node), self.voter(node));
            assert!(voter.lease_end().is_none() || known.lease, "node {node} has a lease: {self}");
            assert_eq!(voter.is_tainted, known.tainted, "node {node} is tainted: {self}");
            let is_yield = |command: &model::Command| matches!(verb(*command), Some(Verb::Yield { .. }));
            let yields = self.model.unanswered(node).iter().any(is_yield);
            let counts = known.vote && !known.tainted && !yields;
            let is_ours = voter.is_ours(now(), TTL);
            assert!(phase == Fast || is_ours == counts, "node {node} votes: {self}");
        }
        phase != Hold || is_won
    }
}

impl std::fmt::Display for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:?}", self.model.phase())?;
        (0..self.nodes).try_for_each(|node| {
            let (known, unanswered) = (self.model.known(node), self.model.unanswered(node));
            writeln!(f, "{node}: {known:?} {unanswered:?}\n   {:?}", self.voter(node))
        })
    }
}

/// Model's number of a token that is larger than that of the client.
const LARGER: u8 = 2;

/// Corresponding token in the code. The candidate knows its own token only by its phase.
fn larger() -> OwnerToken {
    OwnerToken::parse("00000000-0002-7000-8000-000000000000@00000000000000000000002").unwrap()
}

fn verb(command: model::Command) -> Option<Verb> {
    let claim = CLAIM;
    match command {
        model::Command::SetNx => Some(Verb::SetNx { ttl: TTL }),
        model::Command::Acquire => Some(Verb::Acquire { ttl: TTL, claim, holds: false }),
        model::Command::WinBack => Some(Verb::Acquire { ttl: TTL, claim, holds: true }),
        model::Command::Extend => Some(Verb::Extend { ttl: TTL }),
        model::Command::Yield | model::Command::YieldTo(_) => Some(Verb::Yield { claim }),
        model::Command::Release | model::Command::Adopt => None,
    }
}

fn reply(command: model::Command, reply: model::Reply) -> Reply {
    use model::Command::{Acquire, Extend, SetNx, WinBack, Yield, YieldTo};
    use model::Reply::{Kept, Lease, LeaseSmaller, No, Yielded};
    let left = Some(LONG);
    match (command, reply) {
        (SetNx | Acquire | WinBack, Lease) => Reply::Granted { smaller: false, number: None },
        (Acquire, LeaseSmaller) => Reply::Granted { smaller: true, number: None },
        (SetNx, No) => Reply::Taken,
        (Acquire | WinBack, No) => Reply::Queued { left, rank: 0 },
        (Extend, Lease) => Reply::Extended { waiters: 0, number: None },
        (Extend, No) => Reply::NotOwner,
        (Yield | YieldTo(_), Kept) => Reply::Kept,
        (Yield | YieldTo(_), Yielded) => Reply::Yielded { left },
        other => panic!("no such answer: {other:?}"),
    }
}

/// Drives both through every sequence of events up to `depth`. Returns the number of pairs of states.
fn follow(start: Pair, depth: usize) -> usize {
    let (mut seen, mut frontier) = (HashSet::new(), vec![start]);
    for _ in 0..depth {
        let mut next = Vec::new();
        for pair in &frontier {
            for node in 0..pair.nodes {
                for event in pair.events(node) {
                    let mut pair = pair.clone();
                    let is_followed = pair.step(node, event);
                    let key = format!("{pair}{:?}{:?}{}", pair.epochs, pair.overtaken, pair.cuts);
                    if is_followed && seen.insert(key) {
                        next.push(pair);
                    }
                }
            }
        }
        frontier = next;
    }
    seen.len()
}

/// Runs all scenarios with a candidate that follows the `rules`.
fn follow_all(rules: Rules) -> usize {
    let bounds = [(1, 2, 12), (2, 1, 7), (3, 0, 6), (3, 1, 5)];
    let starts = bounds.into_iter().flat_map(|(nodes, cuts, depth)| {
        let new = || Pair::new(nodes, cuts, rules);
        [(new().trying(), depth), (new().waiting(), depth)]
    });
    starts.map(|(start, depth)| follow(start, depth)).sum()
}

#[test]
fn candidate_counts_no_more_than_the_model_client() {
    let states = follow_all(Rules::default());
    println!("{states} pairs of states");
    assert!(states > 10_000, "{states}");
}

#[test]
fn candidate_without_a_rule_counts_more_than_the_model_client() {
    for rule in [Rule::YieldVoids, Rule::CutYieldTaints, Rule::ClaimIsNoLease, Rule::YieldVoidsProof] {
        let followed = std::panic::catch_unwind(|| follow_all(Rules { without: Some(rule) }));
        assert!(followed.is_err(), "nobody notices that {rule:?} is missing");
    }
}
