//! One state of the lock model, and its bytes.

use super::node::Node;
use crate::bytes::{push_packed, take, take_packed};
use crate::fifo::Fifo;

/// Largest number of nodes of a scenario.
pub(crate) const NODES: usize = 3;
/// Largest number of tokens of a scenario, including successors.
pub(crate) const TOKENS: usize = 4;

/// Bit in the byte of the owner: a byte follows with the links on which only failed scripts have answered.
const HAS_FAILED: u32 = 5;

/// Complete state of the model.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    pub(crate) columns: [Column; NODES],
    pub(crate) phases: [Phase; TOKENS],
    /// Remaining budgets of the scenario's bounds.
    pub(crate) crashes: u8,
    pub(crate) cuts: u8,
    pub(crate) failures: u8,
    pub(crate) forgeries: u8,
    pub(crate) expiries: u8,
    pub(crate) polls: u8,
}

/// Node with all connections to it. Nodes differ in nothing else, so sorting the columns removes the symmetry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Column {
    pub(crate) node: Node,
    pub(crate) links: [Link; TOKENS],
}

/// Knowledge of a token's client about a node, and the connection between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::struct_excessive_bools, reason = "independent bits of the protocol")]
pub(crate) struct Link {
    /// Commands that are sent and not executed. Without a connection, the commands for the next one.
    pub(crate) commands: Fifo,
    /// Replies and pushes in transit to the client.
    pub(crate) replies: Fifo,
    /// Commands from the broken connection that may still be executed. Their replies are lost.
    pub(crate) stale: Fifo,
    pub(crate) vote: bool,
    /// `true` if `e` of the protocol is in the future.
    pub(crate) lease: bool,
    /// `true` if the counted vote is a claim that was not extended yet.
    pub(crate) claim: bool,
    pub(crate) tainted: bool,
    pub(crate) down: bool,
    /// `true` if the client believes that the node has nothing of its token: all answers so far were errors of scripts. Always `false` if
    /// failed scripts are released.
    pub(crate) has_only_failed: bool,
}

/// Phase of the client of a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The scenario has no such token, or not yet.
    #[default]
    Unborn,
    /// Has sent a first try to all nodes, without a place in the queues.
    Fast,
    /// `WAIT` and `CONFIRM`: in the latter, the votes reach a quorum.
    Wait,
    /// A quorum of leases counts.
    Hold,
    /// Released or given up. The client knows the token as long as a `RELEASE` is unanswered.
    Left,
    /// Its process is gone.
    Crashed,
}

impl Phase {
    const ALL: [Self; 6] = [Self::Unborn, Self::Fast, Self::Wait, Self::Hold, Self::Left, Self::Crashed];

    pub(crate) fn is_waiting(self) -> bool {
        matches!(self, Self::Fast | Self::Wait)
    }

    pub(crate) fn is_alive(self) -> bool {
        matches!(self, Self::Fast | Self::Wait | Self::Hold)
    }
}

impl Node {
    /// Returns the owner with its flags, the queue, and the readers.
    fn bytes(self) -> [u8; 3] {
        let owner = self.owner.map_or(0, |owner| owner + 1);
        let readers = self.readers | self.claims << TOKENS;
        [owner | u8::from(self.is_claim) << 3 | u8::from(self.is_marked) << 4, self.queue, readers]
    }

    fn from_bytes([owner, queue, sharing]: [u8; 3]) -> Self {
        let flag = |bit: u32| owner >> bit & 1 == 1;
        let (readers, claims) = (sharing & ((1 << TOKENS) - 1), sharing >> TOKENS);
        Self { owner: (owner & 7).checked_sub(1), readers, claims, queue, is_claim: flag(3), is_marked: flag(4) }
    }
}

impl Link {
    /// Packs 16 bits of commands, 24 of replies, 20 of stale commands and 4 flags. The flag of a claim is stored with those of the other
    /// tokens.
    fn word(self) -> u64 {
        debug_assert!(self.commands.len() <= 4 && self.replies.len() <= 6 && self.stale.len() <= 5, "{self:?}");
        let flags = [self.vote, self.lease, self.tainted, self.down];
        let queues =
            u64::from(self.commands.bits()) | u64::from(self.replies.bits()) << 16 | u64::from(self.stale.bits()) << 40;
        (60..).zip(flags).fold(queues, |word, (bit, flag)| word | u64::from(flag) << bit)
    }

    fn from_word(word: u64) -> Self {
        let bits = |from: u32, len: u32| Fifo::from_bits((word >> from) as u32 & ((1 << len) - 1));
        let flag = |bit: u32| word >> bit & 1 == 1;
        Self {
            commands: bits(0, 16),
            replies: bits(16, 24),
            stale: bits(40, 20),
            vote: flag(60),
            lease: flag(61),
            tainted: flag(62),
            down: flag(63),
            claim: false,
            has_only_failed: false,
        }
    }
}

impl State {
    pub(crate) fn encode(&self, nodes: usize, tokens: usize, bytes: &mut Vec<u8>) {
        let phases = self.phases.iter().rev().fold(0_u16, |bits, phase| bits << 3 | *phase as u16);
        let budgets = u16::from(self.failures) << (3 * TOKENS) | u16::from(self.forgeries) << (3 * TOKENS + 2);
        bytes.extend((phases | budgets).to_le_bytes());
        bytes.extend([self.crashes | self.cuts << 4, self.expiries, self.polls]);
        for column in &self.columns[..nodes] {
            let [owner, queue, readers] = column.node.bytes();
            let claims = column.links.iter().rev().fold(0, |claims, link| claims << 1 | u8::from(link.claim));
            let failed = column.links.iter().rev().fold(0, |failed, link| failed << 1 | u8::from(link.has_only_failed));
            bytes.extend([owner | u8::from(failed > 0) << HAS_FAILED, queue | claims << TOKENS, readers]);
            bytes.extend((failed > 0).then_some(failed));
            column.links[..tokens].iter().for_each(|link| push_packed(link.word(), bytes));
        }
    }

    pub(crate) fn decode(nodes: usize, tokens: usize, bytes: &mut &[u8]) -> Self {
        let mut state = Self::default();
        let phases = u16::from_le_bytes([take(bytes), take(bytes)]);
        for (token, phase) in state.phases.iter_mut().enumerate() {
            *phase = Phase::ALL[usize::from(phases >> (3 * token) & 7)];
        }
        (state.failures, state.forgeries) = ((phases >> (3 * TOKENS) & 3) as u8, (phases >> (3 * TOKENS + 2)) as u8);
        let faults = take(bytes);
        (state.crashes, state.cuts) = (faults & 15, faults >> 4);
        (state.expiries, state.polls) = (take(bytes), take(bytes));
        for column in &mut state.columns[..nodes] {
            let (owner, waiting, readers) = (take(bytes), take(bytes), take(bytes));
            let failed = if owner >> HAS_FAILED & 1 == 1 { take(bytes) } else { 0 };
            column.node = Node::from_bytes([owner, waiting & ((1 << TOKENS) - 1), readers]);
            for (token, link) in column.links[..tokens].iter_mut().enumerate() {
                let (claim, has_only_failed) = (waiting >> (TOKENS + token) & 1 == 1, failed >> token & 1 == 1);
                *link = Link { claim, has_only_failed, ..Link::from_word(take_packed(bytes)) };
            }
        }
        state
    }
}
