//! One node, on plain data: its commands, each atomic, as the runtime's `protocol/node_state` and the scripts have them.
//!
//! The search runs this machine, and a test of the runtime compares it with `protocol/node_state` in every small state.
//! Tokens are numbers; a smaller one was made earlier.

use crate::rule::Rule;

/// The keys `L` and `{L}:q` of one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// The token in `L`.
    pub owner: Option<u8>,
    /// One bit for each token that shares the lock; then nobody owns it.
    pub readers: u8,
    /// One bit for each of those whose share lives only as long as a claim.
    pub claims: u8,
    /// One bit for each token that waits.
    pub queue: u8,
    /// `L` lives only as long as a claim; otherwise as long as the ttl that its owner has asked for.
    pub is_claim: bool,
    /// The `+` behind the token in `L`: others have come to wait for its holder.
    pub is_marked: bool,
}

/// What a node is asked to do for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Take a free lock.
    SetNx,
    /// Take the lock when it is free and nobody waits for longer, or else wait for it in the queue.
    Acquire {
        /// The token holds the lock by other nodes: it comes before all who wait, and who has the node is told so.
        holds: bool,
    },
    /// Start the lease anew if the token owns the lock.
    Extend,
    /// Take the place of the token that the lock was left with, and start the lease anew.
    Adopt {
        /// The token that the lock was left with.
        from: u8,
    },
    /// Pass the lock on to a smaller token, if one waits, and wait for it in the queue.
    Yield {
        /// The token that comes first if it waits, whichever is smaller.
        to: Option<u8>,
    },
    /// Leave the queue, and pass the lock on if the token owns it.
    Release,
}

/// What a node answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// `SetNx`, `Acquire`: the lock is the token's.
    Granted {
        /// It was before, and a smaller token waits for it.
        smaller: bool,
    },
    /// `SetNx`: somebody has it.
    Taken,
    /// `Acquire`: somebody else has it.
    Queued {
        /// How many tokens in the queue come before this one.
        rank: u32,
    },
    /// `Extend`, `Adopt`: the lease starts anew.
    Extended {
        /// How many tokens wait for its end.
        waiters: u32,
    },
    /// `Yield`: nobody who waits comes first, and the lock stays the token's.
    Kept,
    /// `Yield`: somebody else has it now, and the token waits.
    Yielded,
    /// `Release`: given back.
    Released,
    /// `Extend`, `Adopt`, `Yield`, `Release`: the token does not own the lock.
    NotOwner,
}

/// What a node publishes about a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The lock was handed to the token, as a claim.
    Granted,
    /// The token owns the lock, and another waits for it.
    Contended {
        /// The one that waits.
        by: u8,
    },
    /// The token owns the lock here, and another that holds it by other nodes waits.
    Wanted {
        /// The one that holds.
        by: u8,
    },
}

/// Publishes a notice to the process of a token, and says whether anybody has received it.
pub type Publish<'a> = &'a mut dyn FnMut(u8, Notice) -> bool;

impl Node {
    /// Runs `verb` for `token`, with all rules but `without`. `sharing` has a bit for each token that is a reader.
    pub fn execute(
        &mut self,
        token: u8,
        verb: Verb,
        sharing: u8,
        without: Option<Rule>,
        publish: Publish<'_>,
    ) -> Reply {
        let mut execution = Execution { node: self, token, sharing, without, publish };
        if let Some(reply) = execution.share(verb) {
            return reply;
        }
        match verb {
            Verb::SetNx => execution.set_nx(),
            Verb::Acquire { holds } => execution.acquire(holds),
            Verb::Extend => execution.extend(),
            Verb::Adopt { from } => execution.adopt(from),
            Verb::Yield { to } => execution.yield_lock(to),
            Verb::Release => execution.release(),
        }
    }

    /// The key expires, or is deleted.
    pub fn expire(&mut self) {
        *self = Self { queue: self.queue, ..Self::default() };
    }

    /// The share of `token` ends.
    pub fn expire_share(&mut self, token: u8) {
        (self.readers, self.claims) = (self.readers & !(1 << token), self.claims & !(1 << token));
    }

    /// Whether `token` has the lock, alone or with others.
    #[must_use]
    pub fn has(&self, token: u8) -> bool {
        self.owner == Some(token) || self.readers >> token & 1 == 1
    }

    /// Whether `token` waits.
    #[must_use]
    pub const fn is_queued(&self, token: u8) -> bool {
        self.queue >> token & 1 == 1
    }
}

/// One command at work.
pub(super) struct Execution<'a> {
    pub(super) node: &'a mut Node,
    pub(super) token: u8,
    pub(super) sharing: u8,
    without: Option<Rule>,
    pub(super) publish: Publish<'a>,
}

impl Execution<'_> {
    fn set_nx(&mut self) -> Reply {
        if self.node.owner.is_some() {
            return Reply::Taken;
        }
        // Whoever waits for a key that has vanished asks again, and sets the mark then.
        self.own(self.token, false);
        Reply::Granted { smaller: false }
    }

    fn acquire(&mut self, holds: bool) -> Reply {
        match self.node.owner {
            Some(owner) if owner == self.token => {
                self.own(self.token, self.node.is_marked);
                self.leave_queue();
                Reply::Granted { smaller: self.is_smaller_waiting() }
            }
            Some(owner) => {
                let is_new = self.join_queue();
                self.node.is_marked |= self.keeps(Rule::WaitersMarkTheHolder);
                if is_new || self.keeps(Rule::HolderHearsOfEveryCall) {
                    let by = self.token;
                    (self.publish)(owner, if holds { Notice::Wanted { by } } else { Notice::Contended { by } });
                }
                self.queued()
            }
            None if holds || !self.is_smaller_waiting() => {
                self.leave_queue();
                self.own(self.token, self.is_waited_for());
                Reply::Granted { smaller: false }
            }
            None => {
                self.join_queue();
                let has_it = self.hand_over(Some(false)) == Some(self.token);
                if has_it { Reply::Granted { smaller: false } } else { self.queued() }
            }
        }
    }

    fn extend(&mut self) -> Reply {
        let creates = !self.keeps(Rule::ExtensionNeverCreates) && self.node.owner.is_none();
        if !self.is_owner() && !creates {
            return Reply::NotOwner;
        }
        self.own(self.token, self.node.is_marked);
        // Without the mark, the queue is not looked at.
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

    fn yield_lock(&mut self, to: Option<u8>) -> Reply {
        if !self.is_owner() {
            return Reply::NotOwner;
        }
        if let Some(to) = to.filter(|to| self.node.is_queued(*to)) {
            return self.yield_to(to);
        }
        if self.first().is_none_or(|first| self.token < first) {
            return Reply::Kept;
        }
        self.join_queue();
        if self.hand_over(Some(self.node.is_claim)) == Some(self.token) { Reply::Kept } else { Reply::Yielded }
    }

    /// To a token that waits; if its process is gone, to whoever is the first.
    fn yield_to(&mut self, to: u8) -> Reply {
        let is_claim = self.node.is_claim;
        self.node.queue &= !(1 << to);
        self.join_queue();
        self.own(to, true);
        self.node.is_claim = true;
        let is_heard = (self.publish)(to, Notice::Granted);
        if !is_heard && self.hand_over(Some(is_claim)) == Some(self.token) { Reply::Kept } else { Reply::Yielded }
    }

    fn release(&mut self) -> Reply {
        if self.is_owner() && !self.node.is_marked {
            // Nobody has come to wait, so that the queue is not looked at.
            self.node.expire();
            return Reply::Released;
        }
        self.leave_queue();
        let was_owner = self.is_owner() || !self.keeps(Rule::ReleaseChecksTheOwner);
        // A free lock is handed over as well: the runtime repeats a release that has found too many absent waiters.
        if was_owner || self.node.owner.is_none() {
            self.hand_over(None);
        }
        if was_owner { Reply::Released } else { Reply::NotOwner }
    }

    /// `HAND`: the first in the queue whose process listens becomes the owner. `own_turn` is whether the token of the
    /// command itself, should it be the next, has the lock for no longer than a claim; `None` when it does not wait.
    fn hand_over(&mut self, own_turn: Option<bool>) -> Option<u8> {
        while let Some(next) = self.pop_first() {
            self.own(next, self.is_waited_for() && self.keeps(Rule::HandOverKeepsTheMark));
            if let Some(is_claim) = own_turn.filter(|_| next == self.token) {
                self.node.is_claim = is_claim || !self.keeps(Rule::OwnTurnIsALease);
                return Some(next);
            }
            self.node.is_claim = true;
            if (self.publish)(next, Notice::Granted) {
                return Some(next);
            }
        }
        self.node.expire();
        None
    }

    /// `token` owns the lock, with the ttl of the command.
    pub(super) fn own(&mut self, token: u8, is_marked: bool) {
        *self.node = Node { owner: Some(token), is_marked, queue: self.node.queue, ..Node::default() };
    }

    /// Whether anybody is in the queue.
    pub(super) fn is_waited_for(&self) -> bool {
        self.node.queue != 0
    }

    pub(super) fn is_owner(&self) -> bool {
        self.node.owner == Some(self.token)
    }

    /// Whether the token was not in the queue before.
    pub(super) fn join_queue(&mut self) -> bool {
        let is_new = !self.node.is_queued(self.token);
        self.node.queue |= 1 << self.token;
        is_new
    }

    pub(super) fn leave_queue(&mut self) {
        self.node.queue &= !(1 << self.token);
    }

    /// The smallest token in the queue.
    fn first(&self) -> Option<u8> {
        self.is_waited_for().then(|| self.node.queue.trailing_zeros() as u8)
    }

    fn pop_first(&mut self) -> Option<u8> {
        let first = self.first()?;
        self.node.queue &= !(1 << first);
        Some(first)
    }

    /// The tokens in the queue that come before the one of the command, one bit for each.
    pub(super) fn before(&self) -> u8 {
        self.node.queue & ((1 << self.token) - 1)
    }

    fn is_smaller_waiting(&self) -> bool {
        self.before() != 0
    }

    fn queued(&self) -> Reply {
        Reply::Queued { rank: self.before().count_ones() }
    }

    pub(super) fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}
