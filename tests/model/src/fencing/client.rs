//! Client of a token: it proposes ballots to all nodes until a quorum accepts one, and then holds the lock with that number.

use super::command::{MOST, Sent};
use super::state::{Link, NODES, Phase, State};
use super::{Action, Fencing, Variant};
use crate::rule::Rule;

const QUORUM: usize = 2;

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
            Phase::Idle => self.proposals(0, token, actions),
            Phase::Asking => {
                if client.rounds < self.rounds {
                    self.proposals(client.ballot, token, actions);
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
    fn proposals(&self, latest: u8, token: usize, actions: &mut Vec<Action>) {
        let is_again = latest > 0 && self.variant == Variant::ProposesAgain;
        let from = if is_again { latest } else { latest + 1 };
        actions.extend((from..=MOST.min(self.ballots)).map(|ballot| Action::Propose { token, ballot }));
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
