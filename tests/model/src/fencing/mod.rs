//! Fencing numbers drawn from several nodes: unique, and larger than all that were issued before.
//!
//! The lock itself is left out: as any grant may expire and any token be granted a node at any time, a command may find
//! its token as the owner of the node or not, whatever happened before. Even two tokens that both believe to hold the
//! lock must have different numbers. Real time enters through the order of events: when a confirming round begins, the
//! largest number issued so far is noted, and the number of the round must exceed it. An answer arrives at once or never:
//! one that is late only makes its number known later, which asks less of the others.

mod client;
mod node;
mod state;

use std::fmt;

use crate::rule::Rule;
use crate::search::Model;
use client::{CONFIRM, is_awaited};
pub use node::{Counter, Fence};
pub use state::State;
use state::{NODES, Phase};

/// How numbers are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Variant {
    /// As the protocol says.
    #[default]
    Protocol,
    /// Without the rule, of which [`Rule::NumbersAreAgreedOn`] is one of fencing: the largest number of a quorum counts.
    Without(Rule),
    /// Every grant counts one more, and the maximum over a quorum is the number.
    MaximumOfIncr,
    /// A hand-over draws, the push carries the number, and the confirming round draws nothing.
    NumberFromPush,
    /// The node-wide maximum follows draws only.
    RaisesLeaveMaximum,
    /// Answers of an earlier round count as well.
    EarlierRoundCounts,
}

/// Three nodes, and tokens that each draw a number.
#[derive(Debug, Clone, Copy)]
pub struct Fencing {
    /// At most 3.
    pub tokens: usize,
    /// How many rounds a token may begin: one that draws, and those that raise or draw again.
    pub rounds: u8,
    /// A later round of a token may also be one that draws, as after a timeout.
    pub repeats: bool,
    /// Tokens may give up, and others go on with their hints.
    pub retries: bool,
    /// How numbers are made.
    pub variant: Variant,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the same few numbers everywhere")]
pub enum Action {
    /// A token sends its first confirming round, with the hint of a token that gave up or without.
    Begin { token: usize, hinted: bool },
    /// It sends another one.
    Again { token: usize },
    /// It sends the one that raises the lower numbers.
    Raise { token: usize },
    /// It gives up.
    GiveUp { token: usize },
    /// A node executes the oldest command of a token, as its owner; the answer arrives, or does not matter.
    Execute { token: usize, node: usize, heard: bool },
    /// A node refuses the oldest command of a token, as it is not the owner.
    Refuse { token: usize, node: usize },
    /// A node is handed to a token, which draws only in the variant that is wrong about it.
    HandOver { token: usize, node: usize },
    /// The idle counter of a node expires.
    Forget { node: usize },
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
        (0..NODES).for_each(|node| self.node_actions(state, node, actions));
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut state = *state;
        match action {
            Action::Begin { token, hinted } => self.begin(&mut state, token, hinted),
            Action::Again { token } => self.start_round(&mut state, token, CONFIRM),
            Action::Raise { token } => self.raise(&mut state, token),
            Action::GiveUp { token } => client::give_up(&mut state, token),
            Action::Execute { token, node, heard } => self.execute(&mut state, token, node, heard),
            Action::Refuse { token, node } => state.columns[node].links[token].commands.pop(),
            Action::HandOver { token, node } => self.hand_over(&mut state, token, node),
            Action::Forget { node } => state.columns[node].counter.forget(),
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
        let issued = || (0..self.tokens).filter(|token| state.clients[*token].phase == Phase::Issued);
        let late = issued().find(|token| state.clients[*token].is_late);
        let late = late.map(|token| format!("t{token} has a number that is not above all issued before its round"));
        let same = |token: usize| issued().find(|other| *other < token && state.number(*other) == state.number(token));
        late.or_else(|| {
            issued().find_map(|token| same(token).map(|other| format!("t{other} and t{token} have one number")))
        })
    }

    fn show(&self, state: &State) -> String {
        state.show(self.tokens)
    }
}

impl Fencing {
    fn node_actions(&self, state: &State, node: usize, actions: &mut Vec<Action>) {
        // The counter outlives every grant, and grants expire at any time.
        if state.columns[node].counter.by.is_some() {
            actions.push(Action::Forget { node });
        }
        let waits = |token: &usize| matches!(state.clients[*token].phase, Phase::Idle | Phase::Confirming);
        if self.variant == Variant::NumberFromPush {
            actions.extend((0..self.tokens).filter(waits).map(|token| Action::HandOver { token, node }));
        }
    }
}

fn link_actions(state: &State, token: usize, node: usize, actions: &mut Vec<Action>) {
    let commands = state.columns[node].links[token].commands;
    if commands.is_empty() {
        return;
    }
    if is_awaited(state, token, commands.first()) {
        actions.push(Action::Execute { token, node, heard: true });
    }
    actions.push(Action::Execute { token, node, heard: false });
    // To refuse the last one and never to execute it are the same.
    if commands.len() > 1 {
        actions.push(Action::Refuse { token, node });
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Begin { token, hinted: false } => write!(f, "t{token} sends its first round"),
            Self::Begin { token, hinted: true } => write!(f, "t{token} sends its first round, with a hint"),
            Self::Again { token } => write!(f, "t{token} sends another round"),
            Self::Raise { token } => write!(f, "t{token} sends a round that raises"),
            Self::GiveUp { token } => write!(f, "t{token} gives up"),
            Self::Execute { token, node, heard: true } => write!(f, "node {node} answers t{token}"),
            Self::Execute { token, node, heard: false } => write!(f, "node {node} answers t{token}, too late"),
            Self::Refuse { token, node } => write!(f, "node {node} refuses t{token}"),
            Self::HandOver { token, node } => write!(f, "node {node} is handed to t{token}"),
            Self::Forget { node } => write!(f, "the idle counter of node {node} expires"),
        }
    }
}
