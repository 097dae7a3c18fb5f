//! The client of a token: rounds over all nodes until a quorum answers one number.

use super::state::{NODES, Phase, State};
use super::{Action, Fencing, Variant};
use crate::rule::Rule;

/// Kind of a round that draws.
pub(super) const CONFIRM: u8 = 0;
/// Kind of a round that raises.
const RAISE: u8 = 8;

const QUORUM: usize = 2;

pub(super) fn is_raise(command: u8) -> bool {
    command & RAISE != 0
}

/// Whether the client still listens to the round of `command`.
pub(super) fn is_awaited(state: &State, token: usize, command: u8) -> bool {
    let client = state.clients[token];
    client.phase == Phase::Confirming && client.round == command & !RAISE
}

impl Fencing {
    pub(super) fn client_actions(&self, state: &State, token: usize, actions: &mut Vec<Action>) {
        let client = state.clients[token];
        match client.phase {
            // Tokens differ in nothing: they begin in order.
            Phase::Idle if token > 0 && state.clients[token - 1].phase == Phase::Idle => {}
            Phase::Idle => {
                actions.push(Action::Begin { token, hinted: false });
                if hint(state) > 0 {
                    actions.push(Action::Begin { token, hinted: true });
                }
            }
            Phase::Confirming => {
                let numbers = numbers(state, token).count();
                if client.round < self.rounds && self.repeats {
                    actions.push(Action::Again { token });
                }
                if client.round < self.rounds && numbers >= QUORUM {
                    actions.push(Action::Raise { token });
                }
                // Nobody else would notice.
                if self.retries
                    && numbers > 0
                    && state.clients[..self.tokens].iter().any(|other| other.phase == Phase::Idle)
                {
                    actions.push(Action::GiveUp { token });
                }
            }
            Phase::Issued | Phase::GaveUp => {}
        }
    }

    pub(super) fn begin(&self, state: &mut State, token: usize, hinted: bool) {
        state.clients[token].phase = Phase::Confirming;
        state.clients[token].hint = if hinted { hint(state) } else { 0 };
        self.start_round(state, token, CONFIRM);
    }

    pub(super) fn raise(&self, state: &mut State, token: usize) {
        state.clients[token].number = largest(state, token);
        self.start_round(state, token, RAISE);
    }

    pub(super) fn start_round(&self, state: &mut State, token: usize, kind: u8) {
        let issued = state.clients.iter().filter(|client| client.phase == Phase::Issued);
        let floor = issued.map(|client| client.number).max().unwrap_or(0);
        let client = &mut state.clients[token];
        client.round += 1;
        client.floor = floor;
        let command = client.round | kind;
        for column in &mut state.columns {
            let link = &mut column.links[token];
            link.commands.push(command);
            if self.variant != Variant::EarlierRoundCounts {
                link.answer = 0;
            }
        }
    }

    pub(super) fn hear(&self, state: &mut State, token: usize, at: usize, number: u8) {
        state.columns[at].links[token].answer = number;
        let largest = largest(state, token);
        let agreeing = numbers(state, token).filter(|number| *number == largest).count();
        let answered = numbers(state, token).count();
        let is_largest_enough =
            matches!(self.variant, Variant::MaximumOfIncr | Variant::Without(Rule::NumbersAreAgreedOn));
        let needed = if is_largest_enough { answered } else { agreeing };
        if needed >= QUORUM {
            state.clients[token].phase = Phase::Issued;
            state.clients[token].number = largest;
            state.clients[token].is_late = largest <= state.clients[token].floor;
            forget(state, token);
        }
    }
}

/// The `RELEASE` behind its commands is an expiry like any other here.
pub(super) fn give_up(state: &mut State, token: usize) {
    state.clients[token].phase = Phase::GaveUp;
    state.clients[token].number = state.clients[token].number.max(largest(state, token));
    forget(state, token);
}

/// Answers change nothing any more; commands still do.
fn forget(state: &mut State, token: usize) {
    (state.clients[token].round, state.clients[token].floor) = (0, 0);
    for column in &mut state.columns {
        let link = &mut column.links[token];
        (link.answer, link.pushed) = (0, 0);
    }
}

/// What a retry knows: the largest number that a token which gave up has seen.
fn hint(state: &State) -> u8 {
    let gave_up = state.clients.iter().filter(|client| client.phase == Phase::GaveUp);
    gave_up.map(|client| client.number).max().unwrap_or(0)
}

/// The answers of the round.
fn numbers(state: &State, token: usize) -> impl Iterator<Item = u8> {
    let answers: [u8; NODES] = state.columns.map(|column| column.links[token].answer);
    answers.into_iter().filter(|number| *number > 0)
}

fn largest(state: &State, token: usize) -> u8 {
    numbers(state, token).max().unwrap_or(0)
}
