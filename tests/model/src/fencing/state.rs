//! One state of the fencing model, and its bytes.

use super::node::Counter;
use crate::bytes::{push_packed, take_packed};
use crate::fifo::Fifo;

pub(crate) const NODES: usize = 3;
pub(crate) const TOKENS: usize = 3;

/// Everything that can differ between two moments.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    pub(crate) columns: [Column; NODES],
    pub(crate) clients: [Client; TOKENS],
}

/// A node with what travels between it and each token. Sorting these removes the symmetry of the nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Column {
    pub(crate) counter: Counter,
    pub(crate) links: [Link; TOKENS],
}

/// Between a token and a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    /// Each the number of its round, with a flag when it raises.
    pub(crate) commands: Fifo,
    /// Number that has arrived in the present round, 0 for none.
    pub(crate) answer: u8,
    /// Number that a push has carried, only where that is the variant.
    pub(crate) pushed: u8,
}

/// The client of one token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    pub(crate) round: u8,
    /// Of what this token sends first.
    pub(crate) hint: u8,
    /// Issued; before that what the lower nodes are raised to; of a token that gave up the largest seen.
    pub(crate) number: u8,
    /// Largest number that was issued when the present round began.
    pub(crate) floor: u8,
    /// Issued, and not larger than that.
    pub(crate) is_late: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Idle,
    Confirming,
    Issued,
    GaveUp,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Idle, Self::Confirming, Self::Issued, Self::GaveUp];
}

impl Counter {
    fn word(self) -> u64 {
        let by = self.by.map_or(0, |token| token + 1);
        u64::from_le_bytes([by, self.number, self.largest, 0, 0, 0, 0, 0])
    }

    fn from_word(word: u64) -> Self {
        let [by, number, largest, ..] = word.to_le_bytes();
        Self { by: by.checked_sub(1), number, largest }
    }
}

impl Link {
    fn word(self) -> u64 {
        let commands = u64::from(self.commands.bits());
        commands | u64::from(self.answer) << 32 | u64::from(self.pushed) << 40
    }

    fn from_word(word: u64) -> Self {
        let [.., answer, pushed, _, _] = word.to_le_bytes();
        Self { commands: Fifo::from_bits(word as u32), answer, pushed }
    }
}

impl Client {
    fn word(self) -> u64 {
        u64::from_le_bytes([
            self.phase as u8,
            self.round,
            self.hint,
            self.number,
            self.floor,
            self.is_late.into(),
            0,
            0,
        ])
    }

    fn from_word(word: u64) -> Self {
        let [phase, round, hint, number, floor, is_late, ..] = word.to_le_bytes();
        Self { phase: Phase::ALL[usize::from(phase)], round, hint, number, floor, is_late: is_late == 1 }
    }
}

impl State {
    pub(crate) fn number(&self, token: usize) -> u8 {
        self.clients[token].number
    }

    pub(crate) fn encode(&self, tokens: usize, bytes: &mut Vec<u8>) {
        self.clients[..tokens].iter().for_each(|client| push_packed(client.word(), bytes));
        for column in &self.columns {
            push_packed(column.counter.word(), bytes);
            column.links[..tokens].iter().for_each(|link| push_packed(link.word(), bytes));
        }
    }

    pub(crate) fn decode(tokens: usize, bytes: &mut &[u8]) -> Self {
        let mut state = Self::default();
        state.clients[..tokens].iter_mut().for_each(|client| *client = Client::from_word(take_packed(bytes)));
        for column in &mut state.columns {
            column.counter = Counter::from_word(take_packed(bytes));
            column.links[..tokens].iter_mut().for_each(|link| *link = Link::from_word(take_packed(bytes)));
        }
        state
    }

    pub(crate) fn show(&self, tokens: usize) -> String {
        let client = |(token, client): (usize, &Client)| format!("t{token} {:?} {}", client.phase, client.number);
        let clients = self.clients[..tokens].iter().enumerate().map(client);
        let nodes = self.columns.iter().map(|column| column.counter).enumerate().map(|(name, counter)| {
            let by = counter.by.map_or("nobody".to_owned(), |token| format!("t{token}"));
            format!("n{name} number {} by {by} largest {}", counter.number, counter.largest)
        });
        clients.chain(nodes).collect::<Vec<_>>().join(" | ")
    }
}
