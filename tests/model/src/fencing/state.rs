//! One state of the fencing model, and its bytes.

use super::command::Sent;
use super::node::Register;
use crate::bytes::{push_packed, take_packed};
use crate::fifo::Fifo;

pub(crate) const NODES: usize = 3;
pub(crate) const TOKENS: usize = 3;
/// Number of names. Each name has a separate register.
pub(crate) const NAMES: usize = 2;

/// Complete state of the model.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    pub(crate) columns: [Column; NODES],
    pub(crate) clients: [Client; TOKENS],
    /// Largest number of all holders so far, for each name.
    pub(crate) issued: [u8; NAMES],
    /// `true` if a holder has a number that is not larger than all earlier ones of the same name.
    pub(crate) is_late: bool,
    /// Number of expired keys and of nodes that were given away.
    pub(crate) changes: u8,
    /// Number of nodes that have lost their data.
    pub(crate) wipes: u8,
    /// Number of nodes whose registers were damaged.
    pub(crate) poisons: u8,
}

/// Node with its connections to all tokens. Sorting the columns removes the symmetry of the nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Column {
    pub(crate) registers: [Register; NAMES],
    pub(crate) owners: [Option<u8>; NAMES],
    /// Agreed number of each name that the node has not accepted, and has yet to learn. 0 for none.
    pub(crate) owed: [u8; NAMES],
    /// `true` if the node has lost its data and was not taught the known numbers yet.
    pub(crate) is_returning: bool,
    /// `true` if the registers were damaged.
    pub(crate) is_damaged: bool,
    pub(crate) links: [Link; TOKENS],
}

/// Connection between a token and a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    /// Commands on their way, each the code of a [`Sent`].
    pub(crate) commands: Fifo,
    /// `true` if the node provably keeps the lock for the token.
    pub(crate) has_vote: bool,
    /// Ballot that the node has accepted according to the client, 0 for none.
    pub(crate) accepted: u8,
    /// Largest ballot that no clock explains and that the node has returned with a refusal. 0 for none.
    pub(crate) far: u8,
}

/// The client of one token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    pub(crate) rounds: u8,
    /// Latest proposed ballot. For a holder, its number.
    pub(crate) ballot: u8,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Idle,
    Asking,
    Holding,
    Ended,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Idle, Self::Asking, Self::Holding, Self::Ended];
}

impl Column {
    /// Records that the node has not accepted an agreed `number`.
    pub(crate) fn owe(&mut self, name: usize, number: u8) {
        if self.registers[name].0 < number {
            self.owed[name] = self.owed[name].max(number);
        }
    }

    /// Returns `true` if the node has yet to learn a number.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_returning || self.owed != [0; NAMES]
    }

    /// Raises the registers to the numbers that the node owes, and to those of `issued` if it has lost its data.
    pub(crate) fn learn(&mut self, issued: [u8; NAMES]) {
        let numbers = if self.is_returning { issued } else { self.owed };
        self.registers.iter_mut().zip(numbers).for_each(|(register, number)| register.raise(number));
        self.is_returning = false;
        self.settle();
    }

    /// Forgets the debts that the registers have reached.
    pub(crate) fn settle(&mut self) {
        for (owed, register) in self.owed.iter_mut().zip(self.registers) {
            *owed = if *owed <= register.0 { 0 } else { *owed };
        }
    }
}

impl Link {
    pub(super) fn send(&mut self, sent: Sent) {
        self.commands.push(sent.code());
    }

    /// Returns `true` if a release follows all other commands on the connection.
    pub(crate) fn is_given_back(self) -> bool {
        self.commands.contains(Sent::Give.code())
    }

    fn word(self) -> u64 {
        u64::from(self.commands.bits())
            | u64::from(self.accepted) << 32
            | u64::from(self.has_vote) << 40
            | u64::from(self.far) << 48
    }

    fn from_word(word: u64) -> Self {
        let [.., accepted, has_vote, far, _] = word.to_le_bytes();
        Self { commands: Fifo::from_bits(word as u32), has_vote: has_vote == 1, accepted, far }
    }
}

impl Client {
    fn word(self) -> u64 {
        u64::from_le_bytes([self.phase as u8, self.rounds, self.ballot, 0, 0, 0, 0, 0])
    }

    fn from_word(word: u64) -> Self {
        let [phase, rounds, ballot, ..] = word.to_le_bytes();
        Self { phase: Phase::ALL[usize::from(phase)], rounds, ballot }
    }
}

impl State {
    /// Returns the links of one token.
    pub(crate) fn links(&self, token: usize) -> [Link; NODES] {
        self.columns.map(|column| column.links[token])
    }

    pub(crate) fn votes(&self, token: usize) -> usize {
        self.links(token).iter().filter(|link| link.has_vote).count()
    }

    pub(crate) fn encode(&self, tokens: usize, bytes: &mut Vec<u8>) {
        push_packed(
            u64::from_le_bytes([
                self.issued[0],
                self.issued[1],
                self.is_late.into(),
                self.changes,
                self.wipes,
                self.poisons,
                0,
                0,
            ]),
            bytes,
        );
        self.clients[..tokens].iter().for_each(|client| push_packed(client.word(), bytes));
        for column in &self.columns {
            let [one, other] = column.owners.map(|owner| owner.map_or(0, |owner| owner + 1));
            let [register, second] = column.registers;
            let ([owed, owed_second], flags) = (column.owed, [column.is_returning.into(), column.is_damaged.into()]);
            let [is_returning, is_damaged] = flags;
            let word = [register.0, one, second.0, other, owed, owed_second, is_returning, is_damaged];
            push_packed(u64::from_le_bytes(word), bytes);
            column.links[..tokens].iter().for_each(|link| push_packed(link.word(), bytes));
        }
    }

    pub(crate) fn decode(tokens: usize, bytes: &mut &[u8]) -> Self {
        let [first, second, is_late, changes, wipes, poisons, ..] = take_packed(bytes).to_le_bytes();
        let mut state =
            Self { issued: [first, second], is_late: is_late == 1, changes, wipes, poisons, ..Self::default() };
        state.clients[..tokens].iter_mut().for_each(|client| *client = Client::from_word(take_packed(bytes)));
        for column in &mut state.columns {
            let [register, one, second, other, owed, owed_second, is_returning, is_damaged] =
                take_packed(bytes).to_le_bytes();
            (column.owed, column.is_returning, column.is_damaged) =
                ([owed, owed_second], is_returning == 1, is_damaged == 1);
            column.registers = [Register(register), Register(second)];
            column.owners = [one.checked_sub(1), other.checked_sub(1)];
            column.links[..tokens].iter_mut().for_each(|link| *link = Link::from_word(take_packed(bytes)));
        }
        state
    }

    pub(crate) fn show(&self, tokens: usize) -> String {
        let client = |(token, client): (usize, &Client)| format!("t{token} {:?} {}", client.phase, client.ballot);
        let clients = self.clients[..tokens].iter().enumerate().map(client);
        let nodes = self.columns.iter().enumerate().map(|(name, column)| {
            let owner = |owner: Option<u8>| owner.map_or("nobody".to_owned(), |token| format!("t{token}"));
            let names = column.registers.iter().zip(column.owners);
            let names: Vec<_> = names.map(|(register, of)| format!("{} of {}", register.0, owner(of))).collect();
            format!("n{name} {}", names.join(", "))
        });
        clients.chain(nodes).collect::<Vec<_>>().join(" | ")
    }
}
