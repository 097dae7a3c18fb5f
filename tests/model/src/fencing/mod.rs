//! Fencing numbers by ballots: they rise in the order of the holders.
//!
//! A client proposes one ballot to all nodes, together with its question for the lock; a node accepts one that is larger than
//! all that it has accepted. The lock is held with the number that a quorum has accepted, by votes that still stand.
//!
//! The lock is as simple as can be: there are no queues, and any key may expire at any time; with it ends the vote, since
//! a client's lease is over before the key is. Clocks may say anything: a client proposes any ballot that it has not proposed
//! before. An answer arrives at once or never; one that is late only makes known later what is true now, if it is still.

mod client;
mod command;
mod node;
mod state;

use std::fmt;

use crate::fifo::Fifo;
use crate::rule::Rule;
use crate::search::Model;
use command::Sent;
pub use node::Register;
pub use state::State;
use state::{NODES, Phase};

/// How numbers are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Variant {
    /// As the protocol says.
    #[default]
    Protocol,
    /// Without a rule.
    Without(Rule),
    /// A node accepts every ballot.
    Overwrites,
    /// The lock is held with a number that one node has accepted.
    OneNodeIsEnough,
    /// A token proposes the same ballot once more. That is safe, because what a node has accepted ends with its vote.
    ProposesAgain,
}

/// Three nodes, and tokens that each want the lock with a number.
#[derive(Debug, Clone, Copy)]
pub struct Fencing {
    /// At most 3.
    pub tokens: usize,
    /// How many rounds a token may begin.
    pub rounds: u8,
    /// The largest ballot, at most 4.
    pub ballots: u8,
    /// How often a key expires, or a token that waits gives a node away.
    pub changes: u8,
    /// How many nodes lose their data, one after the other, each while a lock is held on all of them.
    pub wipes: u8,
    /// How numbers are made.
    pub variant: Variant,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the same few numbers everywhere")]
pub enum Action {
    /// A token asks all nodes for the lock with a ballot.
    Propose { token: usize, ballot: u8 },
    /// A node executes the oldest command of a token; the answer arrives, or does not matter.
    Execute { token: usize, node: usize, heard: bool },
    /// The oldest command of a token never arrives.
    Drop { token: usize, node: usize },
    /// A token that waits gives a node away.
    Give { token: usize, node: usize },
    /// The key at a node expires.
    Expire { node: usize },
    /// A token has the lock, with a number.
    Hold { token: usize, number: u8 },
    /// A holder asks for a vote that it lacks.
    WinBack { token: usize, node: usize },
    /// A node loses its data.
    Wipe { node: usize },
    /// A holder ends, and its token is given back everywhere.
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
            let may_expire = column.owner.is_some() && state.changes < self.changes;
            actions.extend(may_expire.then_some(Action::Expire { node }));
            let is_held_everywhere =
                |token: usize| state.clients[token].phase == Phase::Holding && state.votes(token) == NODES;
            if state.wipes < self.wipes && (0..self.tokens).any(is_held_everywhere) {
                actions.push(Action::Wipe { node });
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
            Action::Expire { node } => {
                state.changes += 1;
                self.expire(&mut state, node);
            }
            Action::Hold { token, number } => client::hold(&mut state, token, number),
            Action::WinBack { token, node } => self.win_back(&mut state, token, node),
            Action::Wipe { node } => self.wipe(&mut state, node),
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
        state.is_late.then(|| "a token holds the lock with a number that is not above all before".to_owned())
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
            column.owner = column.owner.filter(|owner| Some(*owner) != name);
            return;
        }
        let is_free = column.owner.is_none();
        // A plain `SET NX` does not know its own token.
        let is_granted = is_free || column.owner == name && !matches!(sent, Sent::Take(_));
        column.owner = column.owner.or(name);
        let may_propose = |by_owner: bool| is_granted || !by_owner;
        let ballot = sent.ballot().filter(|(_, by_owner)| may_propose(*by_owner)).map(|(ballot, _)| ballot);
        let accepted = ballot.filter(|ballot| column.register.propose(*ballot, self.variant));
        if heard && is_granted && matches!(state.clients[token].phase, Phase::Asking | Phase::Holding) {
            self.hear(&mut column.links[token], accepted);
        }
    }

    fn expire(&self, state: &mut State, at: usize) {
        let column = &mut state.columns[at];
        if let Some(owner) = column.owner.take() {
            self.lose(&mut column.links[usize::from(owner)]);
        }
    }

    /// The connections to the node end with it.
    fn wipe(&self, state: &mut State, at: usize) {
        self.expire(state, at);
        let column = &mut state.columns[at];
        column.register = Register::default();
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
    // To lose the last one and never to execute it are the same.
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
            Self::Expire { node } => write!(f, "the key of node {node} expires"),
            Self::Hold { token, number } => write!(f, "t{token} holds the lock with {number}"),
            Self::WinBack { token, node } => write!(f, "t{token} asks for the vote of node {node}"),
            Self::Wipe { node } => write!(f, "node {node} loses its data"),
            Self::End { token } => write!(f, "t{token} ends"),
        }
    }
}
