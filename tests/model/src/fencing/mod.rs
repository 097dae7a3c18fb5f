//! Fencing numbers by ballots: they rise in the order of the holders.
//!
//! A client proposes one ballot to all nodes, together with its request for the lock. A node accepts a ballot that is larger than
//! all ballots that it has accepted. The lock is held with the number that a quorum has accepted, by votes that are still valid.
//!
//! The lock itself is minimal. It has no queues, and any key may expire at any time.
//! The vote ends with its key, because a client's lease ends before the key does.
//! Clocks may show any time: a client proposes any ballot that it has not proposed before.
//! An answer arrives at once or never. A late answer would only report a fact later, if the fact is still true.

mod client;
mod command;
mod node;
mod state;

use std::fmt;

use crate::fifo::Fifo;
use crate::rule::Rule;
use crate::search::Model;
use client::QUORUM;
use command::{FAR, Sent};
pub use node::Register;
pub use state::State;
use state::{Column, NAMES, NODES, Phase};

/// Way in which numbers are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Variant {
    /// The rules of the protocol.
    #[default]
    Protocol,
    /// The protocol without a rule.
    Without(Rule),
    /// A node accepts every ballot.
    Overwrites,
    /// The lock is held with a number that one node has accepted.
    OneNodeIsEnough,
    /// A node that learns a number counts as if it had accepted the number.
    TellsCount,
    /// A number that no clock explains never counts, even if a quorum returns it.
    FarNumbersAreIgnored,
    /// A token proposes the same ballot again. This is safe, because an accepted ballot ends with its vote.
    ProposesAgain,
}

/// Three nodes, and tokens that each want the lock with a number, or two locks with one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fencing {
    /// Number of tokens, at most 3.
    pub tokens: usize,
    /// Names that each token wants: a bit for each of the two names.
    pub wants: [u8; 3],
    /// Number of rounds that a token may begin.
    pub rounds: u8,
    /// The largest ballot that a clock shows, at most 3.
    pub ballots: u8,
    /// Largest number of expired keys, and of nodes that a waiting token gives away.
    pub changes: u8,
    /// Number of nodes that lose their data, one after the other: each while a lock is held on all of them.
    pub wipes: u8,
    /// Nodes learn the agreed numbers that they have missed, and all known numbers after a loss of data. A node then loses its data only when
    /// no node has yet to learn a number, and not while a lock is held on all of them.
    pub learns: bool,
    /// Number of nodes whose registers get a number that no clock explains.
    pub poisons: u8,
    /// Way in which numbers are made.
    pub variant: Variant,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the same few numbers everywhere")]
pub enum Action {
    /// A token asks all nodes for the lock with a ballot.
    Propose { token: usize, ballot: u8 },
    /// A node executes the oldest command of a token. The answer arrives, or does not matter.
    Execute { token: usize, node: usize, heard: bool },
    /// The oldest command of a token never arrives.
    Drop { token: usize, node: usize },
    /// A waiting token gives a node to another token.
    Give { token: usize, node: usize },
    /// The key with this name expires at a node.
    Expire { node: usize, name: usize },
    /// A token acquires the lock, with a number.
    Hold { token: usize, number: u8 },
    /// A holder asks for a missing vote.
    WinBack { token: usize, node: usize },
    /// A node loses its data.
    Wipe { node: usize },
    /// A node receives the agreed numbers that it owes, or all known numbers.
    Learn { node: usize },
    /// The registers of a node are damaged.
    Poison { node: usize },
    /// A holder ends, and its token is released everywhere.
    End { token: usize },
}

impl Model for Fencing {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for token in 0..self.tokens {
            self.client_actions(state, token, actions);
            (0..NODES).for_each(|node| link_actions(state, token, node, actions));
        }
        for (node, column) in state.columns.iter().enumerate() {
            let may_expire = |name: &usize| column.owners[*name].is_some() && state.changes < self.changes;
            actions.extend((0..NAMES).filter(may_expire).map(|name| Action::Expire { node, name }));
            let is_held_everywhere =
                |token: usize| state.clients[token].phase == Phase::Holding && state.votes(token) == NODES;
            let may_wipe = || {
                if self.learns {
                    !state.columns.iter().any(Column::is_behind)
                } else {
                    (0..self.tokens).any(is_held_everywhere)
                }
            };
            if state.wipes < self.wipes && may_wipe() {
                actions.push(Action::Wipe { node });
            }
            if column.is_behind() {
                actions.push(Action::Learn { node });
            }
            if state.poisons < self.poisons && !column.is_damaged {
                actions.push(Action::Poison { node });
            }
        }
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut state = *state;
        match action {
            Action::Propose { token, ballot } => client::propose(&mut state, token, ballot),
            Action::Execute { token, node, heard } => self.execute(&mut state, token, node, heard),
            Action::Drop { token, node } => state.columns[node].links[token].commands.pop(),
            Action::Give { token, node } => {
                state.changes += 1;
                let link = &mut state.columns[node].links[token];
                self.lose(link);
                link.send(Sent::Give);
            }
            Action::Expire { node, name } => {
                state.changes += 1;
                self.expire(&mut state, node, name);
            }
            Action::Hold { token, number } => self.hold(&mut state, token, number),
            Action::WinBack { token, node } => self.win_back(&mut state, token, node),
            Action::Wipe { node } => self.wipe(&mut state, node),
            Action::Learn { node } => self.learn(&mut state, node),
            Action::Poison { node } => {
                state.poisons += 1;
                let column = &mut state.columns[node];
                column.is_damaged = true;
                column.registers.iter_mut().for_each(|register| register.raise(FAR));
                column.settle();
            }
            Action::End { token } => client::end(&mut state, token),
        }
        state
    }

    fn canonical(&self, mut state: State) -> State {
        state.columns.sort_unstable();
        state
    }

    fn encode(&self, state: &State, bytes: &mut Vec<u8>) {
        state.encode(self.tokens, bytes);
    }

    fn decode(&self, bytes: &mut &[u8]) -> State {
        State::decode(self.tokens, bytes)
    }

    fn violation(&self, state: &State, _stuck: bool) -> Option<String> {
        if state.is_late {
            return Some("a token holds the lock with a number that does not rise".to_owned());
        }
        let is_raised =
            |column: &Column| !column.is_damaged && column.registers.iter().any(|register| register.0 >= FAR);
        if usize::from(state.poisons) < QUORUM && state.columns.iter().any(is_raised) {
            return Some("a damaged register has raised another node".to_owned());
        }
        let stuck = (0..self.tokens).filter(|_| self.poisons > 0).find(|token| self.is_stuck(state, *token))?;
        Some(format!("t{stuck} has enough votes and gets no number"))
    }

    fn show(&self, state: &State) -> String {
        state.show(self.tokens)
    }
}

impl Fencing {
    fn execute(&self, state: &mut State, token: usize, at: usize, heard: bool) {
        let column = &mut state.columns[at];
        let link = &mut column.links[token];
        let sent = Sent::from_code(link.commands.first());
        link.commands.pop();
        let name = Some(token as u8);
        if sent == Sent::Give {
            column.owners = column.owners.map(|owner| owner.filter(|owner| Some(*owner) != name));
            return;
        }
        let wanted: Vec<usize> = self.names(token).collect();
        // A plain `SET NX` does not recognise its own token.
        let is_own = |owner: Option<u8>| owner == name && !matches!(sent, Sent::Take(_));
        let is_granted = wanted.iter().all(|name| column.owners[*name].is_none() || is_own(column.owners[*name]));
        if is_granted {
            for wanted in &wanted {
                column.owners[*wanted] = name;
            }
        }
        // Several names need a script, in which only the owner proposes.
        let may_propose = |by_owner: bool| is_granted || !by_owner && wanted.len() == 1;
        let ballot = sent.ballot().filter(|(_, by_owner)| may_propose(*by_owner)).map(|(ballot, _)| ballot);
        let accepted = ballot.filter(|ballot| self.propose(&mut column.registers, &wanted, *ballot));
        column.settle();
        let is_listening = heard && matches!(state.clients[token].phase, Phase::Asking | Phase::Holding);
        if is_listening && is_granted {
            self.hear(&mut column.links[token], accepted);
        }
        // A number for several names that no clock explains is not used.
        let refused = ballot.filter(|_| is_listening && accepted.is_none() && wanted.len() == 1);
        if refused.is_some_and(|_| column.registers[wanted[0]].0 >= FAR) {
            column.links[token].far = column.registers[wanted[0]].0;
        }
    }

    /// Returns the names that a token wants.
    fn names(&self, token: usize) -> impl Iterator<Item = usize> + use<> {
        let wants = self.wants[token];
        (0..NAMES).filter(move |name| wants >> name & 1 == 1)
    }

    /// Returns `true` if the registers of the `wanted` names accept the ballot. Each register stores the ballot independently of the
    /// others.
    fn propose(&self, registers: &mut [Register; NAMES], wanted: &[usize], ballot: u8) -> bool {
        let accepted = wanted.iter().filter(|name| registers[**name].propose(ballot, self.variant)).count();
        let needed = if self.lacks(Rule::EveryRegisterAccepts) { 1 } else { wanted.len() };
        accepted >= needed
    }

    fn expire(&self, state: &mut State, at: usize, name: usize) {
        let column = &mut state.columns[at];
        if let Some(owner) = column.owners[name].take() {
            self.lose(&mut column.links[usize::from(owner)]);
        }
    }

    /// Raises the registers of a node. This is not an acceptance.
    fn learn(&self, state: &mut State, at: usize) {
        let column = &mut state.columns[at];
        let told = if column.is_returning { state.issued[0] } else { column.owed[0] };
        column.learn(state.issued);
        if self.variant == Variant::TellsCount {
            column.links.iter_mut().filter(|link| link.has_vote).for_each(|link| link.accepted = told);
        }
    }

    /// Empties a node, and ends its connections.
    fn wipe(&self, state: &mut State, at: usize) {
        (0..NAMES).for_each(|name| self.expire(state, at, name));
        let column = &mut state.columns[at];
        column.registers = Default::default();
        column.is_returning = self.learns && !self.lacks(Rule::ReturningNodesLearnNumbers);
        column.links.iter_mut().for_each(|link| link.commands = Fifo::default());
        state.wipes += 1;
    }
}

fn link_actions(state: &State, token: usize, node: usize, actions: &mut Vec<Action>) {
    let link = state.columns[node].links[token];
    if link.commands.is_empty() {
        return;
    }
    actions.push(Action::Execute { token, node, heard: false });
    let is_listening = matches!(state.clients[token].phase, Phase::Asking | Phase::Holding);
    if is_listening && !link.is_given_back() {
        actions.push(Action::Execute { token, node, heard: true });
    }
    // Losing the last command is the same as never executing it.
    if link.commands.len() > 1 {
        actions.push(Action::Drop { token, node });
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Propose { token, ballot } => write!(f, "t{token} proposes {ballot}"),
            Self::Execute { token, node, heard: true } => write!(f, "node {node} answers t{token}"),
            Self::Execute { token, node, heard: false } => write!(f, "node {node} executes what t{token} has sent"),
            Self::Drop { token, node } => write!(f, "node {node} never gets the oldest command of t{token}"),
            Self::Give { token, node } => write!(f, "t{token} gives node {node} away"),
            Self::Expire { node, name } => write!(f, "key {name} of node {node} expires"),
            Self::Hold { token, number } => write!(f, "t{token} holds the lock with {number}"),
            Self::WinBack { token, node } => write!(f, "t{token} asks for the vote of node {node}"),
            Self::Wipe { node } => write!(f, "node {node} loses its data"),
            Self::Learn { node } => write!(f, "node {node} learns the numbers that it has missed"),
            Self::Poison { node } => write!(f, "the registers of node {node} are damaged"),
            Self::End { token } => write!(f, "t{token} ends"),
        }
    }
}
