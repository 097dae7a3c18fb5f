//! `FENCE` at a node, on plain data, as the runtime's `protocol/node_state/counter.rs` and the scripts have it.
//!
//! The search runs this machine, and a test of the runtime compares it with that file for every small counter.

use super::client::is_raise;
use super::state::State;
use super::{Fencing, Variant};

/// `{L}:f` and the node-wide `G`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counter {
    /// The number in `{L}:f`; 0 where that does not exist.
    pub number: u8,
    /// Whom it was drawn by; nobody where `{L}:f` does not exist.
    pub by: Option<u8>,
    /// `G`: the largest number of the node.
    pub largest: u8,
}

/// What happens to the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// The next number, which is larger than `above`; the same one again for a token that has drawn it.
    Draw {
        /// What the client knows of.
        above: u8,
    },
    /// The number becomes `to`, unless another token has drawn one that is not smaller.
    Raise {
        /// The largest number that the token was told.
        to: u8,
    },
}

impl Counter {
    /// The number of `token`, which owns the lock; `None` when it gets none.
    pub fn apply(&mut self, fence: Fence, token: u8, variant: Variant) -> Option<u8> {
        let number = match fence {
            Fence::Draw { above } => self.drawn(above, token, variant),
            Fence::Raise { to } => self.raised(to, token)?,
        };
        (self.number, self.by) = (number, Some(token));
        if matches!(fence, Fence::Draw { .. }) || variant != Variant::RaisesLeaveMaximum {
            self.largest = self.largest.max(number);
        }
        Some(number)
    }

    /// `{L}:f` expires.
    pub fn forget(&mut self) {
        (self.number, self.by) = (0, None);
    }

    fn drawn(self, above: u8, token: u8, variant: Variant) -> u8 {
        let is_again = self.by == Some(token) && variant != Variant::MaximumOfIncr;
        if is_again { self.number } else { self.start().max(above) + 1 }
    }

    /// `None` where another token has the number or a larger one.
    fn raised(self, to: u8, token: u8) -> Option<u8> {
        let may_raise = self.by == Some(token) || self.start() < to;
        may_raise.then(|| self.start().max(to))
    }

    /// The number that the next one is above: a counter that does not exist starts above all that the node has given.
    fn start(self) -> u8 {
        if self.by.is_some() { self.number } else { self.largest }
    }
}

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
        let pushed = state.columns[at].links[token].pushed;
        if self.variant == Variant::NumberFromPush && pushed != 0 {
            return Some(pushed);
        }
        let client = state.clients[token];
        let fence =
            if is_raise(command) { Fence::Raise { to: client.number } } else { Fence::Draw { above: client.hint } };
        state.columns[at].counter.apply(fence, token as u8, self.variant)
    }

    /// A hand-over that draws, with a push that carries the number.
    pub(super) fn hand_over(&self, state: &mut State, token: usize, at: usize) {
        let above = state.clients[token].hint;
        let pushed = state.columns[at].counter.apply(Fence::Draw { above }, token as u8, self.variant);
        state.columns[at].links[token].pushed = pushed.unwrap_or(0);
    }
}
