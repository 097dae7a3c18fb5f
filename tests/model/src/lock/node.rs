//! The commands of a node, each atomic, as the protocol writes them.

use super::message::{Command, Reply};
use super::scenario::{DETACHED, Rule};
use super::world::World;

impl World<'_> {
    /// Runs `command` of `token`; `None` where nothing is answered.
    pub(crate) fn execute(&mut self, node: usize, token: usize, command: Command) -> Option<Reply> {
        match command {
            Command::Setnx => Some(self.setnx(node, token)),
            Command::Acquire => Some(self.acquire(node, token)),
            Command::Extend => Some(self.extend(node, token)),
            Command::Adopt => Some(self.adopt(node, token)),
            Command::Yield => Some(self.yield_lock(node, token)),
            Command::Release => {
                self.release(node, token);
                None
            }
        }
    }

    fn setnx(&mut self, node: usize, token: usize) -> Reply {
        if self.node(node).owner.is_some() {
            return Reply::No;
        }
        self.set_owner(node, token);
        Reply::Lease
    }

    fn acquire(&mut self, node: usize, token: usize) -> Reply {
        match self.node(node).owner {
            Some(owner) if usize::from(owner) == token => {
                self.unqueue(node, token);
                self.set_owner(node, token);
                if self.is_smaller_waiting(node, token) { Reply::LeaseSmaller } else { Reply::Lease }
            }
            None if !self.is_smaller_waiting(node, token) => {
                self.unqueue(node, token);
                self.set_owner(node, token);
                Reply::Lease
            }
            None => {
                self.queue(node, token);
                if self.hand_over(node, Some(token)) == Some(token) { Reply::Lease } else { Reply::No }
            }
            Some(owner) => {
                let is_first = self.queue(node, token);
                if is_first || self.keeps(Rule::HolderHearsOfEveryCall) {
                    self.publish_contended(node, usize::from(owner), token);
                }
                Reply::No
            }
        }
    }

    fn extend(&mut self, node: usize, token: usize) -> Reply {
        let creates = !self.keeps(Rule::ExtensionNeverCreates) && self.node(node).owner.is_none();
        if self.owns(node, token) || creates {
            self.set_owner(node, token);
            return Reply::Lease;
        }
        Reply::No
    }

    fn adopt(&mut self, node: usize, token: usize) -> Reply {
        if self.owns(node, DETACHED) {
            if !self.keeps(Rule::AdopterReplaces) {
                return Reply::Lease;
            }
            self.set_owner(node, token);
        }
        self.extend(node, token)
    }

    fn yield_lock(&mut self, node: usize, token: usize) -> Reply {
        if !self.owns(node, token) {
            return Reply::Yielded;
        }
        if !self.is_smaller_waiting(node, token) {
            return Reply::Kept;
        }
        self.queue(node, token);
        if self.hand_over(node, Some(token)) == Some(token) { Reply::Kept } else { Reply::Yielded }
    }

    fn release(&mut self, node: usize, token: usize) {
        self.unqueue(node, token);
        if self.owns(node, token) || !self.keeps(Rule::ReleaseChecksTheOwner) {
            self.hand_over(node, None);
        }
    }

    /// `HAND`: the first in the queue whose process listens becomes the owner.
    fn hand_over(&mut self, node: usize, caller: Option<usize>) -> Option<usize> {
        while let Some(first) = self.first_waiting(node) {
            self.unqueue(node, first);
            self.set_owner(node, first);
            if caller == Some(first) {
                self.node_mut(node).claim = !self.keeps(Rule::OwnTurnIsALease);
                return caller;
            }
            self.node_mut(node).claim = self.scenario.marks_claims();
            if self.publish_granted(node, first) {
                return Some(first);
            }
        }
        self.expire_owner(node);
        None
    }

    pub(crate) fn expire_owner(&mut self, node: usize) {
        self.node_mut(node).owner = None;
        self.node_mut(node).claim = false;
    }

    /// Sets the owner with the caller's ttl.
    fn set_owner(&mut self, node: usize, token: usize) {
        self.node_mut(node).owner = Some(token as u8);
        self.node_mut(node).claim = false;
    }

    fn owns(&self, node: usize, token: usize) -> bool {
        self.node(node).owner == Some(token as u8)
    }

    /// Whether `token` was not in the queue before.
    fn queue(&mut self, node: usize, token: usize) -> bool {
        let is_new = self.node(node).queue >> token & 1 == 0;
        self.node_mut(node).queue |= 1 << token;
        is_new
    }

    fn unqueue(&mut self, node: usize, token: usize) {
        self.node_mut(node).queue &= !(1 << token);
    }

    fn first_waiting(&self, node: usize) -> Option<usize> {
        let queue = self.node(node).queue;
        (queue != 0).then(|| queue.trailing_zeros() as usize)
    }

    fn is_smaller_waiting(&self, node: usize, token: usize) -> bool {
        self.node(node).queue & ((1 << token) - 1) != 0
    }
}
