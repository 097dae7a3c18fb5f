//! What one search covers: how many nodes and tokens, which faults, and which rule is left out.

use super::message::Command;
use super::state::{NODES, TOKENS};
use crate::rule::Rule;

/// Bounds and faults of one search. Start from [`Scenario::new`] and change what differs.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Scenario {
    /// Nodes, at most 3; a majority is the quorum.
    pub nodes: usize,
    /// Tokens that compete from the beginning, at most 4. A smaller token was made earlier.
    pub tokens: usize,
    /// Every choice of tokens that begin with `SETNX` instead of `ACQUIRE`.
    pub fast: bool,
    /// How often a key may expire; [`UNBOUNDED`] for no bound.
    pub expiries: u8,
    /// How often a waiter may repeat `ACQUIRE` on a node (safety poll, recheck); [`UNBOUNDED`] for no bound.
    pub polls: u8,
    /// Waiters may give up.
    pub give_up: bool,
    /// Clients that may crash. Without expiries, others would wait for ever for what they held.
    pub crashes: u8,
    /// Connections that may break.
    pub cuts: u8,
    /// The last node never executes anything.
    pub frozen: bool,
    /// Clients send whatever they like, up to so many commands unanswered on one connection, and the property is that
    /// a lease that counts belongs to the node's owner: see [`Scenario::lone_node`].
    pub free: Option<u32>,
    /// The claims of so many nodes, the first ones, come with a proof, which ends with its key.
    pub proves: usize,
    /// The last token is not there from the beginning: the client of the one before goes on with it, with the time of
    /// the old one, when too many nodes are tainted.
    pub successor: bool,
    /// Token 0 was detached: every node has it as its owner, an `EXTEND` may still be on its way, and nobody uses it any
    /// more. So many tokens after it try to adopt the lock, at the same time; the rest waits.
    pub adopters: usize,
    /// One bit for each token that shares the lock.
    pub sharing: u8,
    /// The rule that is switched off.
    pub without: Option<Rule>,
}

/// No bound on the number of events of a kind.
pub const UNBOUNDED: u8 = u8::MAX;

/// The token that is detached, in scenarios with one.
pub(crate) const DETACHED: usize = 0;

impl Scenario {
    /// `tokens` waiters on `nodes` nodes, without faults and timers.
    ///
    /// # Panics
    ///
    /// When the state has no room for that many.
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
            frozen: false,
            free: None,
            proves: 0,
            successor: false,
            adopters: 0,
            sharing: 0,
            without: None,
        }
    }

    /// One node of any number, with clients that may send anything at any time.
    ///
    /// What a client does at one node depends on the others only through its decisions. With every decision allowed,
    /// this covers each node of every larger cluster: if here a lease that counts always belongs to the owner, then no
    /// two tokens count a lease of the same node, and two majorities share a node.
    #[must_use]
    pub fn lone_node(tokens: usize, unanswered: u32) -> Self {
        Self { expiries: UNBOUNDED, give_up: true, free: Some(unanswered), ..Self::new(1, tokens) }
    }

    /// The same with `rule` switched off.
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

    /// Tokens, the successor included.
    pub(crate) fn all_tokens(&self) -> usize {
        self.tokens + usize::from(self.successor)
    }

    /// Whether `token` tries to adopt the lock.
    pub(crate) fn adopts(&self, token: usize) -> bool {
        (DETACHED + 1..=self.adopters).contains(&token)
    }

    /// What starts the lease of `token` anew.
    pub(crate) fn extension(&self, token: usize) -> Command {
        if self.adopts(token) { Command::Adopt } else { Command::Extend }
    }

    /// Nodes that execute commands.
    pub(crate) fn working_nodes(&self) -> usize {
        self.nodes - usize::from(self.frozen)
    }

    /// Whether waiters have timers to rely on.
    pub(crate) fn has_timers(&self) -> bool {
        self.polls > 0 || self.expiries > 0
    }

    pub(crate) fn has_faults(&self) -> bool {
        self.crashes > 0 || self.cuts > 0 || self.expiries > 0
    }

    /// Whether claims must be told apart from leases at the node: only wrong clients and nodes mix them up.
    pub(crate) fn tells_claims(&self) -> bool {
        matches!(self.without, Some(Rule::ClaimIsNoLease | Rule::OwnTurnIsALease))
    }
}
