//! One node, on plain data. Its commands are atomic, and equal to the runtime's `protocol/node_state` and to the scripts.
//!
//! The search runs this machine, and a test of the runtime compares it with `protocol/node_state` in every small state.
//! Tokens are numbers. A smaller token is older.

use crate::rule::Rule;

/// The keys `L` and `{L}:q` of one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Token in `L`.
    pub owner: Option<u8>,
    /// Readers: one bit for each token that shares the lock. With readers, the lock has no owner.
    pub readers: u8,
    /// Readers whose share lives only as long as a claim, one bit for each.
    pub claims: u8,
    /// Waiting tokens, one bit for each.
    pub queue: u8,
    /// `true` if `L` lives only as long as a claim. Otherwise it lives as long as the ttl of its owner.
    pub is_claim: bool,
    /// The `+` behind the token in `L`: others are waiting for its holder.
    pub is_marked: bool,
}

/// Operation of a node for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Takes a free lock.
    SetNx,
    /// Takes the lock if it is free and no earlier token waits. Otherwise enters the queue.
    Acquire {
        /// `true` if the token holds the lock by other nodes. It then precedes all waiters, and the owner of the node is notified.
        holds: bool,
    },
    /// Restarts the lease if the token owns the lock.
    Extend,
    /// Takes the place of the detached token, and restarts the lease.
    Adopt {
        /// The detached token.
        from: u8,
    },
    /// Hands the lock to a smaller token, if one is waiting, and enters the queue.
    Yield {
        /// Token that takes precedence over all others if it is waiting.
        to: Option<u8>,
    },
    /// Leaves the queue, and hands the lock over if the token owns it.
    Release,
}

/// Answer of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// `SetNx`, `Acquire`: the token owns the lock.
    Granted {
        /// `true` if the token owned it before, and a smaller token is waiting.
        smaller: bool,
    },
    /// `SetNx`: the lock is taken.
    Taken,
    /// `Acquire`: another token owns the lock.
    Queued {
        /// Number of tokens in the queue before this one.
        rank: u32,
    },
    /// `Extend`, `Adopt`: the lease restarts.
    Extended {
        /// Number of waiting tokens.
        waiters: u32,
    },
    /// `Yield`: the queue has no earlier token, and the owner keeps the lock.
    Kept,
    /// `Yield`: another token owns the lock now, and this one waits.
    Yielded,
    /// `Release`: released.
    Released,
    /// `Extend`, `Adopt`, `Yield`, `Release`: the token does not own the lock.
    NotOwner,
}

/// Published message about a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The lock was handed to the token, as a claim.
    Granted,
    /// The token owns the lock, and another token waits for it.
    Contended {
        /// The waiting token.
        by: u8,
    },
    /// The token owns the lock here. Another token that holds the lock by other nodes waits for it.
    Wanted {
        /// The token that holds the lock by other nodes.
        by: u8,
    },
}

/// Publishes a notice to the process of a token. Returns `true` if it was received.
pub type Publish<'a> = &'a mut dyn FnMut(u8, Notice) -> bool;

impl Node {
    /// Runs `verb` for `token`, with all rules except `without`. `sharing` has a bit for each token that is a reader.
    pub fn execute(
        &mut self,
        token: u8,
        verb: Verb,
        sharing: u8,
        without: Option<Rule>,
        publish: Publish<'_>,
    ) -> Reply {
        let mut execution = Execution { node: self, token, sharing, without, publish };
        let (is_reader, is_shared) = (execution.is_reader(token), execution.node.readers != 0);
        match verb {
            Verb::SetNx if is_reader => execution.try_to_share(),
            Verb::SetNx => execution.set_nx(),
            Verb::Acquire { holds } => execution.acquire(holds),
            Verb::Extend if is_reader => execution.extend_share(),
            Verb::Extend | Verb::Adopt { .. } if is_shared => Reply::NotOwner,
            Verb::Extend => execution.extend(),
            Verb::Adopt { from } => execution.adopt(from),
            Verb::Yield { to } => execution.yield_lock(to),
            Verb::Release => execution.release(),
        }
    }

    /// Expires or deletes the key.
    pub fn expire(&mut self) {
        *self = Self { queue: self.queue, ..Self::default() };
    }

    /// Ends the share of `token`.
    pub fn expire_share(&mut self, token: u8) {
        (self.readers, self.claims) = (self.readers & !(1 << token), self.claims & !(1 << token));
    }

    /// Returns `true` if `token` holds the lock, exclusively or shared.
    #[must_use]
    pub fn has(&self, token: u8) -> bool {
        self.owner == Some(token) || self.readers >> token & 1 == 1
    }

    /// Returns `true` if `token` is in the queue.
    #[must_use]
    pub const fn is_queued(&self, token: u8) -> bool {
        self.queue >> token & 1 == 1
    }
}

/// Execution of one command.
pub(super) struct Execution<'a> {
    pub(super) node: &'a mut Node,
    pub(super) token: u8,
    pub(super) sharing: u8,
    without: Option<Rule>,
    pub(super) publish: Publish<'a>,
}

impl Execution<'_> {
    fn set_nx(&mut self) -> Reply {
        if self.node.owner.is_some() || self.node.readers != 0 {
            return Reply::Taken;
        }
        // If the key has vanished, its waiters ask again, and set the mark then.
        self.own(self.token, false);
        Reply::Granted { smaller: false }
    }

    fn extend(&mut self) -> Reply {
        let creates = !self.keeps(Rule::ExtensionNeverCreates) && self.node.owner.is_none();
        if !self.is_owner() && !creates {
            return Reply::NotOwner;
        }
        self.own(self.token, self.node.is_marked);
        // Without the mark, the queue is not read.
        Reply::Extended { waiters: if self.node.is_marked { self.node.queue.count_ones() } else { 0 } }
    }

    fn adopt(&mut self, from: u8) -> Reply {
        if self.node.owner == Some(from) {
            if self.keeps(Rule::AdopterReplaces) {
                self.own(self.token, self.node.is_marked && self.keeps(Rule::AdoptionKeepsTheMark));
            } else {
                self.token = from;
            }
        }
        self.extend()
    }

    /// Makes `token` the owner, with the ttl of the command.
    pub(super) fn own(&mut self, token: u8, is_marked: bool) {
        *self.node = Node { owner: Some(token), is_marked, queue: self.node.queue, ..Node::default() };
    }

    /// Returns `true` if the queue is not empty.
    pub(super) fn is_waited_for(&self) -> bool {
        self.node.queue != 0
    }

    pub(super) fn is_owner(&self) -> bool {
        self.node.owner == Some(self.token)
    }

    /// Adds the token to the queue. Returns `true` if it was not there before.
    pub(super) fn join_queue(&mut self) -> bool {
        let is_new = !self.node.is_queued(self.token);
        self.node.queue |= 1 << self.token;
        is_new
    }

    pub(super) fn leave_queue(&mut self) {
        self.node.queue &= !(1 << self.token);
    }

    /// Returns the tokens in the queue before the token of the command, one bit for each.
    pub(super) fn before(&self) -> u8 {
        self.node.queue & ((1 << self.token) - 1)
    }

    pub(super) fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}
