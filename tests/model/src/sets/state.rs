//! One state of the model of several names, and its bytes.

use super::node::{NAMES, Node};
use crate::bytes::{push_packed, take_packed};
use crate::fifo::Fifo;

pub(super) const NODES: usize = 3;
pub(super) const TOKENS: usize = 3;

/// Complete state of the model.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    pub(super) columns: [Column; NODES],
    pub(super) phases: [Phase; TOKENS],
    /// Number of names that were taken away.
    pub(super) taken_away: u8,
    /// Number of broken connections.
    pub(super) cuts: u8,
    /// Number of ended processes.
    pub(super) deaths: u8,
    /// Holders that have downgraded to readers.
    pub(super) lowered: u8,
}

/// Node with its connections to all tokens. Sorting the columns removes the symmetry of the nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Column {
    pub(super) node: Node,
    pub(super) links: [Link; TOKENS],
}

/// Connection between a token and a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    /// Commands in transit, each the code of a [`Sent`].
    pub(super) commands: Fifo,
    /// Replies in transit, each the code of a [`Heard`].
    pub(super) replies: Fifo,
    /// `true` if the client counts the node.
    pub(super) counts: bool,
    /// `true` if the node has told the holder that some names are not its own.
    pub(super) is_denied: bool,
    /// `true` after a yield was cut off, which may be executed at any time: the client never counts the node again.
    pub(super) is_tainted: bool,
    /// Code of a command that was cut off, and may be executed at any time.
    pub(super) stale: u8,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Waits,
    Holds,
    HasLeft,
    /// Its process has ended.
    Dead,
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    Acquire = 1,
    Yield,
    Extend,
    Lower,
    Release,
}

impl Sent {
    const ALL: [Self; 5] = [Self::Acquire, Self::Yield, Self::Extend, Self::Lower, Self::Release];

    pub(super) fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|sent| *sent as u8 == code)
    }
}

/// A reply or a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Granted = 1,
    /// Granted while a smaller token waits.
    GrantedBefore,
    Queued,
    Kept,
    Yielded,
    Extended,
    NotOwner,
    /// Push: the only name was granted to the token.
    Given,
    /// Push: one of several names may be free.
    Free,
    /// Push: a smaller token waits.
    Contended,
}

impl Heard {
    const ALL: [Self; 10] = [
        Self::Granted,
        Self::GrantedBefore,
        Self::Queued,
        Self::Kept,
        Self::Yielded,
        Self::Extended,
        Self::NotOwner,
        Self::Given,
        Self::Free,
        Self::Contended,
    ];

    pub(super) fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|heard| *heard as u8 == code)
    }

    const fn grants(self) -> bool {
        matches!(self, Self::Granted | Self::GrantedBefore | Self::Given)
    }

    pub(super) const fn answers_yield(self) -> bool {
        matches!(self, Self::Kept | Self::Yielded)
    }
}

impl Link {
    /// Returns `true` if a `Yield` is unanswered.
    pub(super) fn has_yield_out(self) -> bool {
        let answers = self.replies.iter().filter_map(Heard::of).any(Heard::answers_yield);
        answers || self.commands.contains(Sent::Yield as u8)
    }

    /// Returns `true` if this push is already in transit without a later grant, to which it would not apply.
    pub(super) fn hears(self, push: Heard) -> bool {
        let mut codes = self.replies.iter().skip_while(|code| *code != push as u8);
        codes.next().is_some() && !codes.filter_map(Heard::of).any(Heard::grants)
    }

    fn word(self) -> u64 {
        let flags = [self.is_tainted, self.is_denied, self.counts];
        let flags = flags.iter().fold(0, |bits, flag| bits << 1 | u64::from(*flag));
        assert!(self.commands.len() < 8 && self.replies.len() < 8, "a queue was meant to stay short");
        u64::from(self.commands.bits())
            | u64::from(self.replies.bits()) << 28
            | u64::from(self.stale) << 56
            | flags << 60
    }

    fn from_word(word: u64) -> Self {
        const QUEUE: u64 = (1 << 28) - 1;
        let fifo = |bits: u64| Fifo::from_bits((bits & QUEUE) as u32);
        let is = |bit: u32| word >> bit & 1 == 1;
        Self {
            commands: fifo(word),
            replies: fifo(word >> 28),
            counts: is(60),
            is_denied: is(61),
            is_tainted: is(62),
            stale: (word >> 56 & 15) as u8,
        }
    }
}

impl Phase {
    const ALL: [Self; 4] = [Self::Waits, Self::Holds, Self::HasLeft, Self::Dead];

    /// Returns `true` if the token waits for the lock, or holds it.
    pub(super) const fn is_alive(self) -> bool {
        matches!(self, Self::Waits | Self::Holds)
    }
}

impl State {
    pub(super) fn encode(&self, nodes: usize, tokens: usize, bytes: &mut Vec<u8>) {
        bytes.extend([self.taken_away << 4 | self.cuts << 2 | self.deaths, self.lowered]);
        bytes.extend(self.phases[..tokens].iter().map(|phase| *phase as u8));
        for Column { node, links } in &self.columns[..nodes] {
            let mut word = [0; 8];
            word[..NAMES].copy_from_slice(&node.holders);
            word[NAMES..2 * NAMES].copy_from_slice(&node.queue);
            word[2 * NAMES] = node.lowered;
            push_packed(u64::from_le_bytes(word), bytes);
            links[..tokens].iter().for_each(|link| push_packed(link.word(), bytes));
        }
    }

    pub(super) fn decode(nodes: usize, tokens: usize, bytes: &mut &[u8]) -> Self {
        let (first, rest) = bytes.split_at(2);
        let (losses, lowered) = (first[0], first[1]);
        let (taken_away, cuts, deaths) = (losses >> 4, losses >> 2 & 3, losses & 3);
        let mut state = Self { taken_away, cuts, deaths, lowered, ..Self::default() };
        *bytes = rest;
        for phase in &mut state.phases[..tokens] {
            let (first, rest) = bytes.split_at(1);
            (*phase, *bytes) = (Phase::ALL[usize::from(first[0])], rest);
        }
        for Column { node, links } in &mut state.columns[..nodes] {
            let word = take_packed(bytes).to_le_bytes();
            node.holders.copy_from_slice(&word[..NAMES]);
            node.queue.copy_from_slice(&word[NAMES..2 * NAMES]);
            node.lowered = word[2 * NAMES];
            links[..tokens].iter_mut().for_each(|link| *link = Link::from_word(take_packed(bytes)));
        }
        state
    }
}
