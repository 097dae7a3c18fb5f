//! Operations of a node that concern its queue. They equal the runtime's `protocol/node_state/sharing` and `promotion`, except for the
//! silence of waiters.

use super::node::{Execution, Node, Notice, Reply};
use crate::rule::Rule;

impl Execution<'_> {
    pub(super) fn try_to_share(&mut self) -> Reply {
        loop {
            if self.is_behind() {
                self.promote(None);
            }
            if self.node.owner.is_some() {
                return Reply::Taken;
            } else if !self.is_behind() {
                self.leave_queue();
                self.take(self.token, false);
                self.promote(None);
                return Reply::Granted { smaller: false };
            } else if !self.passes_a_writer_over() {
                return Reply::Taken;
            }
        }
    }

    pub(super) fn acquire(&mut self, holds: bool) -> Reply {
        if self.node.has(self.token) {
            let smaller = self.is_behind();
            self.leave_queue();
            if self.is_reader(self.token) {
                self.take(self.token, false);
                self.promote(None);
            } else {
                self.own(self.token, self.node.is_marked);
            }
            return Reply::Granted { smaller };
        }
        if !self.is_held_against() && (holds || !self.is_behind()) {
            self.leave_queue();
            self.take(self.token, false);
            self.promote(None);
            return Reply::Granted { smaller: false };
        }
        let is_new = self.join_queue();
        self.tell_holders(holds, is_new);
        loop {
            if self.promote(Some(false)) {
                return Reply::Granted { smaller: false };
            } else if !self.passes_a_writer_over() {
                return Reply::Queued { rank: self.rank() };
            }
        }
    }

    fn tell_holders(&mut self, holds: bool, is_new: bool) {
        let by = self.token;
        let notice = if holds { Notice::Wanted { by } } else { Notice::Contended { by } };
        if let Some(owner) = self.node.owner {
            self.node.is_marked |= self.keeps(Rule::WaitersMarkTheHolder);
            if is_new || self.keeps(Rule::HolderHearsOfEveryCall) {
                (self.publish)(owner, notice);
            }
        } else if !self.is_reader(self.token) {
            let most = if self.keeps(Rule::AllHoldersHear) { 8 } else { 1 };
            // In the order in which they lose it.
            let Node { readers, claims, .. } = *self.node;
            let of = move |tokens: u8| (0..8).filter(move |token| tokens >> token & 1 == 1);
            for reader in of(readers & claims).chain(of(readers & !claims)).take(most) {
                (self.publish)(reader, notice);
            }
        }
    }

    pub(super) fn extend_share(&mut self) -> Reply {
        if !self.node.has(self.token) {
            return Reply::NotOwner;
        }
        self.take(self.token, false);
        Reply::Extended { waiters: (self.node.queue & !self.sharing).count_ones() }
    }

    pub(super) fn yield_lock(&mut self, to: Option<u8>) -> Reply {
        if !self.node.has(self.token) {
            return Reply::NotOwner;
        }
        let to = to.filter(|to| self.node.is_queued(*to));
        if to.is_none() && !self.is_behind() {
            return Reply::Kept;
        }
        let is_claim = self.node.is_claim || self.node.claims >> self.token & 1 == 1;
        self.drop_hold(self.token);
        self.join_queue();
        let is_own = match to {
            // The other readers yield to that token as well.
            Some(to) if !self.is_reader(to) && self.node.readers != 0 => false,
            Some(to) => {
                self.give_to(to);
                self.promote(Some(is_claim))
            }
            None => self.promote(Some(is_claim)),
        };
        if is_own { Reply::Kept } else { Reply::Yielded }
    }

    pub(super) fn release(&mut self) -> Reply {
        if self.is_owner() && !self.node.is_marked {
            // Without a mark, no token waits, so the queue is not read.
            self.node.expire();
            return Reply::Released;
        }
        let was_waiting = self.node.is_queued(self.token);
        self.leave_queue();
        let holder = self.node.owner.filter(|_| !self.keeps(Rule::ReleaseChecksTheOwner)).unwrap_or(self.token);
        let is_released = self.node.has(holder);
        self.drop_hold(holder);
        // Admits waiters to a free lock as well, because the runtime repeats a release that has found too many absent waiters.
        if is_released || !was_waiting || self.keeps(Rule::LeavingUnblocks) {
            self.promote(None);
        }
        if is_released { Reply::Released } else { Reply::NotOwner }
    }

    /// Grants the lock to the waiters that can have it now. `own_turn` applies to the token of the command: with `true`, it gets the lock
    /// only as a claim. It is `None` if that token does not wait. Returns `true` if that token got the lock.
    fn promote(&mut self, own_turn: Option<bool>) -> bool {
        let (mut has_own, mut has_shared) = (false, false);
        while let Some(next) = self.next_in().filter(|_| !has_shared || self.keeps(Rule::ReadersTogether)) {
            if self.node.readers >> next & 1 == 1 {
                // A claim would end its lease early.
                self.node.queue &= !(1 << next);
                continue;
            }
            let own = own_turn.filter(|_| next == self.token);
            let is_in = if let Some(is_claim) = own {
                has_own = true;
                self.leave_queue();
                self.take(next, is_claim || !self.keeps(Rule::OwnTurnIsALease));
                true
            } else {
                self.give_to(next)
            };
            has_shared |= is_in && self.is_reader(next);
        }
        has_own
    }

    fn next_in(&self) -> Option<u8> {
        let queue = self.node.queue;
        let first = |tokens: u8| (tokens != 0).then(|| tokens.trailing_zeros() as u8);
        let (writer, reader) = (first(queue & !self.sharing), first(queue & self.sharing));
        if self.node.owner.is_some() {
            return None;
        }
        let reader = reader.filter(|reader| writer.is_none_or(|writer| *reader < writer));
        reader.or(writer.filter(|_| self.node.readers == 0))
    }

    /// Grants the lock to a token as a claim. Returns `false` if its process is gone.
    fn give_to(&mut self, next: u8) -> bool {
        self.node.queue &= !(1 << next);
        self.take(next, true);
        let is_heard = (self.publish)(next, Notice::Granted);
        if !is_heard {
            self.drop_hold(next);
        }
        is_heard
    }

    /// Removes the first waiting writer if it alone blocks the token and its process is gone. Returns `true` if it was removed.
    fn passes_a_writer_over(&mut self) -> bool {
        let is_only_behind = self.is_reader(self.token) && self.node.owner.is_none() && self.is_behind();
        if !is_only_behind || !self.keeps(Rule::BlockersArePinged) {
            return false;
        }
        let writer = (self.node.queue & !self.sharing).trailing_zeros() as u8;
        let is_gone = !(self.publish)(writer, Notice::Contended { by: self.token });
        if is_gone {
            self.node.queue &= !(1 << writer);
        }
        is_gone
    }

    pub(super) fn is_reader(&self, token: u8) -> bool {
        self.sharing >> token & 1 == 1
    }

    fn is_held_against(&self) -> bool {
        self.node.owner.is_some() || !self.is_reader(self.token) && self.node.readers != 0
    }

    /// Returns `true` if an earlier waiter conflicts with this token.
    fn is_behind(&self) -> bool {
        let others = if self.is_reader(self.token) { !self.sharing } else { !0 };
        self.before() & others != 0
    }

    fn rank(&self) -> u32 {
        if !self.is_reader(self.token) {
            return (self.before() & !self.sharing).count_ones();
        }
        (self.node.queue & !self.sharing).count_ones() + (self.before() & self.sharing).count_ones()
    }

    fn take(&mut self, token: u8, is_claim: bool) {
        if self.is_reader(token) {
            let (bit, Node { readers, claims, queue, .. }) = (1 << token, *self.node);
            let claims = if is_claim { claims | bit } else { claims & !bit };
            *self.node = Node { readers: readers | bit, claims, queue, ..Node::default() };
        } else {
            self.own(token, self.is_waited_for() && self.keeps(Rule::HandOverKeepsTheMark));
            self.node.is_claim = is_claim;
        }
    }

    fn drop_hold(&mut self, token: u8) {
        if self.node.owner == Some(token) {
            self.node.expire();
        }
        self.node.expire_share(token);
    }
}
