//! `FENCE` at a node.

use super::client::is_raise;
use super::state::State;
use super::{Fencing, Variant};

impl Fencing {
    /// The oldest command of `token`, which owns the node.
    pub(super) fn execute(&self, state: &mut State, token: usize, at: usize, heard: bool) {
        let command = state.columns[at].links[token].commands.first();
        state.columns[at].links[token].commands.pop();
        let number = self.fence(state, token, at, command);
        if let Some(number) = number.filter(|_| heard) {
            self.hear(state, token, at, number);
        }
    }

    fn fence(&self, state: &mut State, token: usize, at: usize, command: u8) -> Option<u8> {
        match self.variant {
            Variant::NumberFromPush if state.columns[at].links[token].pushed != 0 => {
                Some(state.columns[at].links[token].pushed)
            }
            _ if is_raise(command) => self.raise_to(state, token, at),
            _ => Some(self.draw(state, token, at)),
        }
    }

    fn draw(&self, state: &mut State, token: usize, at: usize) -> u8 {
        let hint = state.clients[token].hint;
        let node = &mut state.columns[at].node;
        let (number, by) = if node.is_counting { (node.number, node.by) } else { (node.maximum, None) };
        let drawn = by == Some(token as u8) && self.variant != Variant::MaximumOfIncr;
        node.number = if drawn { number } else { number.max(hint) + 1 };
        (node.by, node.is_counting) = (Some(token as u8), true);
        node.maximum = node.maximum.max(node.number);
        node.number
    }

    /// Lifts the number to the largest that the token has seen; `None` where another token has it or a larger one.
    fn raise_to(&self, state: &mut State, token: usize, at: usize) -> Option<u8> {
        let wanted = state.clients[token].number;
        let node = &mut state.columns[at].node;
        let (number, by) = if node.is_counting { (node.number, node.by) } else { (node.maximum, None) };
        if by != Some(token as u8) && number >= wanted {
            return None;
        }
        node.number = number.max(wanted);
        (node.by, node.is_counting) = (Some(token as u8), true);
        if self.variant != Variant::RaisesLeaveMaximum {
            node.maximum = node.maximum.max(node.number);
        }
        Some(node.number)
    }

    /// A hand-over that draws, with a push that carries the number.
    pub(super) fn hand_over(&self, state: &mut State, token: usize, at: usize) {
        state.columns[at].links[token].pushed = self.draw(state, token, at);
    }
}
