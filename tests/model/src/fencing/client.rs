//! Client of a token: it proposes ballots to all nodes until a quorum accepts one, and then holds the lock with that number.

use super::command::{FAR, MOST, Sent};
use super::state::{Column, Link, NODES, Phase, State};
use super::{Action, Fencing, Variant};
use crate::rule::Rule;

pub(super) const QUORUM: usize = 2;

/// Limit on the commands on one connection. Too small: a client could not continue while a node is slow.
const MOST_ON_THE_WAY: u32 = 2;

impl Fencing {
    pub(super) fn client_actions(&self, state: &State, token: usize, actions: &mut Vec<Action>) {
        let client = state.clients[token];
        match client.phase {
            // Tokens with the same wishes are interchangeable, so they begin in order.
            Phase::Idle
                if token > 0
                    && self.wants[token - 1] == self.wants[token]
                    && state.clients[token - 1].phase == Phase::Idle => {}
            Phase::Idle => self.proposals(state, 0, token, actions),
            Phase::Asking => {
                if client.rounds < self.rounds {
                    self.proposals(state, client.ballot, token, actions);
                }
                if let Some(number) = self.number(state, token) {
                    actions.push(Action::Hold { token, number });
                }
                actions.extend(self.giving(state, token));
            }
            Phase::Holding => {
                actions.extend(winnable(state, token).map(|node| Action::WinBack { token, node }));
                actions.push(Action::End { token });
            }
            Phase::Ended => {}
        }
    }

    /// Adds the possible proposals. Clocks may show any time, so a client may propose any ballot that it has not proposed before.
    /// A ballot that no clock explains only follows a larger one that counts.
    fn proposals(&self, state: &State, latest: u8, token: usize, actions: &mut Vec<Action>) {
        let is_again = latest > 0 && self.variant == Variant::ProposesAgain;
        let from = if is_again { latest } else { latest + 1 };
        let far = self.far_number(state, token).map(|far| far.max(latest) + 1).filter(|far| *far <= MOST);
        let ballots = (from..=MOST.min(self.ballots)).chain(far);
        actions.extend(ballots.map(|ballot| Action::Propose { token, ballot }));
    }

    /// Returns the largest ballot that no clock explains and that counts: a quorum of nodes has returned it or a larger one.
    fn far_number(&self, state: &State, token: usize) -> Option<u8> {
        let mut far = state.links(token).map(|link| link.far);
        far.sort_unstable_by(|one, other| other.cmp(one));
        let needed = match self.variant {
            Variant::FarNumbersAreIgnored => return None,
            Variant::Without(Rule::FarNumbersNeedAQuorum) => 1,
            _ => QUORUM,
        };
        Some(far[needed - 1]).filter(|far| *far > 0)
    }

    /// Returns `true` if the token gets no number in some rounds without a disturbance, although it has the votes of all nodes or of a
    /// quorum of undamaged nodes, and there are larger numbers.
    pub(super) fn is_stuck(&self, state: &State, token: usize) -> bool {
        let links = || state.columns.iter().map(|column| (column.is_damaged, column.links[token]));
        let is_quiet = links().all(|(_, link)| link.commands.is_empty());
        let healthy = links().filter(|(is_damaged, link)| !is_damaged && link.has_vote).count();
        let has_votes = healthy >= QUORUM || state.votes(token) == NODES;
        if state.clients[token].phase != Phase::Asking || !has_votes || !is_quiet {
            return false;
        }
        let mut state = *state;
        // The first round may only find out which numbers the nodes have.
        for _ in 0..3 {
            let latest = state.clients[token].ballot;
            let near = state.columns.iter().map(|column| column.registers[0].0).filter(|number| *number < FAR).max();
            let next = near.into_iter().chain(self.far_number(&state, token)).chain([latest]).max().unwrap_or(0) + 1;
            if next > MOST {
                return false;
            }
            propose(&mut state, token, next);
            (0..NODES).for_each(|node| self.execute(&mut state, token, node, true));
            if self.number(&state, token).is_some() {
                return false;
            }
        }
        true
    }

    /// Returns the nodes that a waiting token may give to another token.
    fn giving(&self, state: &State, token: usize) -> impl Iterator<Item = Action> {
        let is_changeable = state.changes < self.changes;
        let may_give = move |link: &Link| {
            is_changeable && link.has_vote && !link.is_given_back() && link.commands.len() < MOST_ON_THE_WAY
        };
        let links = state.links(token);
        (0..NODES).filter(move |node| may_give(&links[*node])).map(move |node| Action::Give { token, node })
    }

    /// Records that the node keeps the lock for the token, and if it has `accepted` a ballot.
    pub(super) fn hear(&self, link: &mut Link, accepted: Option<u8>) {
        // A grant from before the token gave the node away is void.
        if link.is_given_back() {
            return;
        }
        let kept = if link.has_vote || self.lacks(Rule::AcceptsEndWithTheVote) { link.accepted } else { 0 };
        (link.has_vote, link.accepted) = (true, accepted.unwrap_or(kept));
    }

    /// Records that the client can no longer prove its vote at the node.
    pub(super) fn lose(&self, link: &mut Link) {
        link.has_vote = false;
        if !self.lacks(Rule::AcceptsEndWithTheVote) {
            link.accepted = 0;
        }
    }

    /// Returns the number with which the token may hold the lock now.
    fn number(&self, state: &State, token: usize) -> Option<u8> {
        let links = state.links(token);
        let accepted: Vec<_> = links.iter().filter(|link| link.has_vote && link.accepted > 0).collect();
        let agreeing = |number: u8| accepted.iter().filter(|link| link.accepted == number).count();
        let has_votes = state.votes(token) >= QUORUM;
        let largest = || accepted.iter().map(|link| link.accepted).max();
        let number = match self.variant {
            Variant::Without(Rule::RefusedIsNotIssued) => Some(state.clients[token].ballot),
            Variant::Without(Rule::AcceptsAreOfOneRound) if accepted.len() >= QUORUM => largest(),
            Variant::OneNodeIsEnough => largest(),
            _ => accepted.iter().map(|link| link.accepted).find(|number| agreeing(*number) >= QUORUM),
        };
        number.filter(|_| has_votes)
    }

    pub(super) fn win_back(&self, state: &mut State, token: usize, node: usize) {
        let number = state.clients[token].ballot;
        let is_plain = self.lacks(Rule::WonVotesCarryTheNumber);
        state.columns[node].links[token].send(if is_plain { Sent::AskPlainly } else { Sent::Ask(number) });
    }

    pub(super) fn hold(&self, state: &mut State, token: usize, number: u8) {
        for name in self.names(token) {
            state.is_late |= number <= state.issued[name];
            state.issued[name] = state.issued[name].max(number);
        }
        let client = &mut state.clients[token];
        (client.phase, client.ballot) = (Phase::Holding, number);
        if self.learns && !self.lacks(Rule::NodesLearnAgreedNumbers) {
            let owe = |column: &mut Column| self.names(token).for_each(|name| column.owe(name, number));
            state.columns.iter_mut().for_each(owe);
        }
    }

    pub(super) fn lacks(&self, rule: Rule) -> bool {
        self.variant == Variant::Without(rule)
    }
}

/// Returns the nodes whose votes a holder is missing, while its other votes prove the lock.
fn winnable(state: &State, token: usize) -> impl Iterator<Item = usize> {
    let (links, is_proven) = (state.links(token), state.votes(token) >= QUORUM);
    (0..NODES).filter(move |node| is_proven && !links[*node].has_vote && links[*node].commands.is_empty())
}

pub(super) fn propose(state: &mut State, token: usize, ballot: u8) {
    let client = &mut state.clients[token];
    let sent = if client.rounds == 0 { Sent::Take(ballot) } else { Sent::Ask(ballot) };
    (client.phase, client.ballot) = (Phase::Asking, ballot);
    client.rounds += 1;
    for column in &mut state.columns {
        let link = &mut column.links[token];
        if link.commands.len() < MOST_ON_THE_WAY && !link.is_given_back() {
            link.send(sent);
        }
    }
}

/// Releases the token at every node that may know it.
pub(super) fn end(state: &mut State, token: usize) {
    state.clients[token].phase = Phase::Ended;
    for column in &mut state.columns {
        let link = &mut column.links[token];
        if (link.has_vote || !link.commands.is_empty()) && !link.is_given_back() {
            link.send(Sent::Give);
        }
        (link.has_vote, link.accepted) = (false, 0);
    }
}
