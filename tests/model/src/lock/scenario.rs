//! Extent of one search: the numbers of nodes and tokens, the faults, and the rule that is switched off.

use super::message::Command;
use super::state::{NODES, TOKENS};
use crate::rule::Rule;

/// Bounds and faults of one search. Start from [`Scenario::new`] and change the fields that differ.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Scenario {
    /// Number of nodes, at most 3. A majority is the quorum.
    pub nodes: usize,
    /// Number of tokens that compete from the beginning, at most 4. A smaller token is older.
    pub tokens: usize,
    /// If `true`, any subset of the tokens begins with `SETNX` instead of `ACQUIRE`.
    pub fast: bool,
    /// Largest number of expired keys; [`UNBOUNDED`] for no bound.
    pub expiries: u8,
    /// Largest number of repeated `ACQUIRE`s of waiters (safety poll, recheck); [`UNBOUNDED`] for no bound.
    pub polls: u8,
    /// If `true`, waiters may give up.
    pub give_up: bool,
    /// Number of clients that may crash. Without expiries, other clients would wait for their locks for ever.
    pub crashes: u8,
    /// Number of connections that may break.
    pub cuts: u8,
    /// Number of scripts, at most 3, that end with an error after they have written everything.
    pub failures: u8,
    /// Number of messages, at most 3, that a stranger forges about any token. An additional token is then made up: no process has drawn it.
    pub forgeries: u8,
    /// If `true`, the last node never executes a command.
    pub frozen: bool,
    /// Clients without rules send any command, with up to this number of unanswered commands on one connection. The property is then that
    /// a counted lease belongs to the node's owner: see [`Scenario::lone_node`].
    pub free: Option<u32>,
    /// Number of nodes, from the first on, whose claims come with a proof. The proof ends with its key.
    pub proves: usize,
    /// If `true`, the last token does not exist at the beginning. The client of the previous token continues with it, at the
    /// same position, when too many nodes are tainted.
    pub successor: bool,
    /// Number of adopters. Token 0 is then detached: it owns every node, an `EXTEND` may be in transit, and no client uses it any
    /// more. The given number of tokens after it try to adopt the lock at the same time. The rest waits.
    pub adopters: usize,
    /// Readers: one bit for each token that shares the lock.
    pub sharing: u8,
    /// The rule that is switched off.
    pub without: Option<Rule>,
}

/// No bound on the number of events of a kind.
pub const UNBOUNDED: u8 = u8::MAX;

/// The detached token, in scenarios with one.
pub(crate) const DETACHED: usize = 0;

impl Scenario {
    /// Returns a scenario with `tokens` waiters on `nodes` nodes, without faults and timers.
    ///
    /// # Panics
    ///
    /// If the state has no room for this many.
    #[must_use]
    pub fn new(nodes: usize, tokens: usize) -> Self {
        assert!((1..=NODES).contains(&nodes) && (1..=TOKENS).contains(&tokens), "the state has no room for that");
        Self {
            nodes,
            tokens,
            fast: false,
            expiries: 0,
            polls: 0,
            give_up: false,
            crashes: 0,
            cuts: 0,
            failures: 0,
            forgeries: 0,
            frozen: false,
            free: None,
            proves: 0,
            successor: false,
            adopters: 0,
            sharing: 0,
            without: None,
        }
    }

    /// Returns a scenario for one node out of any number of nodes. Its clients may send anything at any time.
    ///
    /// A client's actions at one node depend on the other nodes only through its decisions. With every decision allowed,
    /// this scenario covers each node of every larger cluster. Suppose that a counted lease always belongs to the owner here.
    /// Then two tokens never count a lease of the same node, and two majorities share a node.
    #[must_use]
    pub fn lone_node(tokens: usize, unanswered: u32) -> Self {
        Self { expiries: UNBOUNDED, give_up: true, free: Some(unanswered), ..Self::new(1, tokens) }
    }

    /// Switches `rule` off.
    #[must_use]
    pub fn without(self, rule: Rule) -> Self {
        Self { without: Some(rule), ..self }
    }

    pub(crate) fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    pub(crate) fn quorum(&self) -> usize {
        self.nodes / 2 + 1
    }

    /// Returns the number of tokens, including the successor and the token that is made up.
    pub(crate) fn all_tokens(&self) -> usize {
        self.tokens + usize::from(self.successor) + usize::from(self.forgeries > 0)
    }

    /// Returns the token that is made up, if messages are forged.
    pub(crate) fn made_up(&self) -> Option<usize> {
        (self.forgeries > 0).then(|| self.all_tokens() - 1)
    }

    /// Returns `true` if `token` tries to adopt the lock.
    pub(crate) fn adopts(&self, token: usize) -> bool {
        (DETACHED + 1..=self.adopters).contains(&token)
    }

    /// Returns the command that restarts the lease of `token`.
    pub(crate) fn extension(&self, token: usize) -> Command {
        if self.adopts(token) { Command::Adopt } else { Command::Extend }
    }

    /// Returns the number of nodes that execute commands.
    pub(crate) fn working_nodes(&self) -> usize {
        self.nodes - usize::from(self.frozen)
    }

    /// Returns `true` if waiters have timers to rely on.
    pub(crate) fn has_timers(&self) -> bool {
        self.polls > 0 || self.expiries > 0
    }

    pub(crate) fn has_faults(&self) -> bool {
        self.crashes > 0 || self.cuts > 0 || self.expiries > 0
    }

    /// Returns `true` if the node must distinguish claims from leases. Only wrong clients and nodes confuse the two.
    pub(crate) fn tells_claims(&self) -> bool {
        matches!(self.without, Some(Rule::ClaimIsNoLease | Rule::OwnTurnIsALease))
    }
}
