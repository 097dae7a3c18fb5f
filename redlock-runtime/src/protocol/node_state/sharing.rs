//! What a node does where somebody shares the lock, or wants to: the general case, which is a script of its own in Redis.
//!
//! 1. A lock is had by one token alone, or by readers together. One that wants it is *blocked* by a holder in conflict with
//!    it, and by an earlier waiter in conflict with it: readers do not overtake writers.
//! 2. Whoever is blocked tells all holders in conflict, not only one of them, because each may have to yield.
//! 3. Whoever leaves, whether it had anything or only waited, lets those in who were behind it ([`promotion`](super::promotion)).
//! 4. A reader that is blocked by a waiter alone asks after that one: it may be gone, and would be in the way for as long as
//!    others share the lock. So may one be whose process is frozen, which is known by its silence.
//! 5. A holder that shares its lock from now on is told of as a reader, and never has it alone again.

use super::readers::Readers;
use super::{Execution, Queue};
use crate::lock::{Mode, OwnerToken};
use crate::protocol::command::{Notice, Reply, Verb};
use crate::protocol::lease;
use crate::protocol::rules::Rule;
use crate::time::clock::Instant;
use std::time::Duration;

/// So many of those who share a lock are told of a waiter at once. Smaller, more of them hear of it at its next call only;
/// larger, the server is busy for longer.
pub(crate) const MOST_TOLD: usize = 64;

impl Execution<'_> {
    /// Whether the command is one of the general case.
    pub(super) fn concerns_readers(&self) -> bool {
        self.mode.is_shared() || self.readers().is_some() || self.queue().is_some_and(Queue::concerns_readers)
    }

    /// Does what `verb` says, in the general case; `None` when it is nothing special there.
    pub(super) fn share(&mut self, verb: Verb, other: Option<OwnerToken>) -> Option<Reply> {
        // Who has the lock alone, and knows of nobody who waits, looks at no queue.
        let is_simple = self.mode == Mode::Exclusive && self.readers().is_none() && self.is_alone();
        match verb {
            Verb::SetNx { ttl } if self.mode.is_shared() => Some(self.try_to_share(ttl)),
            Verb::SetNx { .. } => self.readers().map(|_| Reply::Taken),
            Verb::Acquire { ttl, claim, holds } => Some(self.acquire_among(ttl, claim, holds)),
            Verb::Extend { ttl } | Verb::Renew { ttl } | Verb::Keep { ttl } | Verb::Adopt { ttl }
                if self.mode.is_shared() =>
            {
                Some(self.extend_share(ttl, other.filter(|_| matches!(verb, Verb::Adopt { .. }))))
            }
            Verb::Extend { ttl } | Verb::Renew { ttl } | Verb::Keep { ttl } => self.raise(ttl),
            // What is left to others as a share is no lock for one alone.
            Verb::Adopt { .. } => self.readers().map(|_| Reply::NotOwner),
            Verb::Enter { .. } => None,
            Verb::Yield { claim } => Some(self.yield_among(claim, other)),
            Verb::Release { .. } if is_simple => None,
            Verb::Release { claim } => Some(self.release_among(claim)),
            Verb::Revoke => other.filter(|_| self.readers().is_some()).map(|from| self.revoke_share(from)),
        }
    }

    /// Takes a share if nobody has the lock alone, or has come before to have it alone. It never waits.
    pub(super) fn try_to_share(&mut self, ttl: Duration) -> Reply {
        let claim = lease::claim(ttl);
        loop {
            if self.is_behind_others() {
                // A lock that is free is that of those who have come before.
                self.promote(claim, None);
            }
            if self.owner().is_some() {
                return Reply::Taken;
            } else if !self.is_behind_others() {
                self.take_share(self.token, ttl);
                self.promote(claim, None);
                return Reply::Granted { smaller: false, number: None };
            } else if !self.passes_a_writer_over() {
                return Reply::Taken;
            }
        }
    }

    fn acquire_among(&mut self, ttl: Duration, claim: Duration, holds: bool) -> Reply {
        if self.holds() {
            let smaller = self.is_behind_others();
            self.leave_queue();
            if self.mode.is_shared() || !self.is_owner() {
                self.take_share(self.token, ttl);
                self.promote(claim, None);
            } else {
                self.own(self.token, ttl, self.is_marked());
            }
            return Reply::Granted { smaller, number: None };
        }
        if !self.is_held_against() && (holds || !self.is_behind_others()) {
            self.leave_queue();
            self.take(self.token, self.mode, ttl);
            self.promote(claim, None);
            return Reply::Granted { smaller: false, number: None };
        }
        let is_new = self.join_among();
        self.tell_holders(holds, is_new);
        loop {
            if self.promote(claim, Some(ttl)) {
                return Reply::Granted { smaller: false, number: None };
            } else if !self.passes_a_writer_over() {
                return Reply::Queued {
                    left: self.key_left(),
                    rank: self.queue().map_or(0, |queue| queue.rank(self.token)),
                };
            }
        }
    }

    /// Starts the lease of a share anew. A lock that the token has alone is shared from now on.
    fn extend_share(&mut self, ttl: Duration, from: Option<OwnerToken>) -> Reply {
        let from = from.filter(|from| self.has_share(*from) || self.owner() == Some(*from));
        if let Some(from) = from.filter(|_| !self.holds()) {
            self.drop_hold_of(from);
        } else if !self.holds() {
            return Reply::NotOwner;
        }
        let was_alone = self.is_owner() || from.is_some();
        self.take_share(self.token, ttl);
        if was_alone {
            self.promote(lease::claim(ttl), None);
        }
        Reply::Extended { waiters: self.queue().map_or(0, Queue::len_alone), number: None }
    }

    /// An extension of a lock that the token had alone, and shares by now: it is a late one, and finds nothing.
    fn raise(&mut self, ttl: Duration) -> Option<Reply> {
        self.readers()?;
        if self.applies(Rule::DowngradeNeverRises) || !self.has_share(self.token) {
            return Some(Reply::NotOwner);
        }
        self.take(self.token, Mode::Exclusive, ttl);
        Some(Reply::Extended { waiters: 0, number: None })
    }

    fn yield_among(&mut self, claim: Duration, to: Option<OwnerToken>) -> Reply {
        if !self.holds() || self.mode == Mode::Exclusive && !self.is_owner() {
            return Reply::NotOwner;
        }
        let to = to.and_then(|to| Some((to, self.queue()?.mode_of(to)?)));
        if to.is_none() && !self.is_behind_others() {
            return Reply::Kept;
        }
        let left = self.hold_left();
        self.drop_hold_of(self.token);
        self.join_among();
        let is_own = match to {
            // Others who share the lock have to yield as well, and must not let each other back in before.
            Some((_, Mode::Exclusive)) if self.has_readers() => false,
            Some((to, mode)) => {
                self.give_to(to, mode, claim);
                self.promote(claim, Some(left))
            }
            None => self.promote(claim, Some(left)),
        };
        if is_own { Reply::Kept } else { Reply::Yielded { left: self.key_left() } }
    }

    fn release_among(&mut self, claim: Duration) -> Reply {
        let token = self.token;
        let was_waiting = self.queue_mut().is_some_and(|queue| queue.remove(token));
        let is_released = self.holds();
        if is_released && self.mode.is_permit() {
            self.tell_freed();
        }
        self.drop_hold_of(self.token);
        if is_released || was_waiting && self.applies(Rule::LeavingUnblocks) {
            self.promote(claim, None);
        }
        if is_released { Reply::Released } else { Reply::NotOwner }
    }

    /// Takes the place of `from`, whose share somebody breaks, and tells it.
    fn revoke_share(&mut self, from: OwnerToken) -> Reply {
        let (token, now) = (self.token, self.now);
        let Some(readers) = self.state.readers.get_mut(self.key.name()) else { return Reply::NotOwner };
        let end = readers.end_of(from, now).or_else(|| readers.end_of(token, now));
        let Some(end) = end else { return Reply::NotOwner };
        readers.replace(from, token, end);
        let is_told = self.notify(from, Notice::Revoked { by: token }) > 0;
        Reply::Revoked { left: end.since(now), is_told }
    }

    /// Passes the first writer over that alone keeps the token from sharing the lock, when nobody is there who could take it.
    fn passes_a_writer_over(&mut self) -> bool {
        let is_only_behind = self.mode.is_shared() && self.owner().is_none() && self.is_behind_others();
        let Some(writer) = self.queue().and_then(Queue::first).filter(|_| is_only_behind) else { return false };
        let (now, by) = (self.now, self.token);
        let pings = self.applies(Rule::BlockersArePinged);
        let is_gone = pings && self.notify(writer, Notice::Contended { by }) == 0;
        let minds_silence = self.applies(Rule::SilentWaitersLeave);
        let Some(queue) = self.queue_mut() else { return false };
        // Looked at in any case: it begins with the first look.
        let is_silent = queue.is_silent(writer, now) && minds_silence;
        (is_gone || is_silent) && queue.remove(writer)
    }

    /// Tells those of the token that have the lock and are in its way.
    fn tell_holders(&mut self, holds: bool, is_new: bool) {
        let by = self.token;
        let notice = if holds { Notice::Wanted { by } } else { Notice::Contended { by } };
        if let Some(owner) = self.owner() {
            if self.applies(Rule::WaitersMarkTheHolder) {
                self.mark();
            }
            if is_new || self.applies(Rule::HolderHearsOfEveryCall) {
                self.notify(owner, notice);
            }
        } else if self.mode == Mode::Exclusive {
            let most = if self.applies(Rule::AllHoldersHear) { MOST_TOLD } else { 1 };
            let readers = self.readers().map_or(Vec::new(), |readers| readers.live(self.now));
            for reader in readers.into_iter().take(most) {
                self.notify(reader, notice);
            }
        }
    }

    pub(super) fn readers(&self) -> Option<&Readers> {
        self.state.readers.get(self.key.name())
    }

    /// Whether anybody has a share.
    pub(super) fn has_readers(&self) -> bool {
        self.readers().is_some_and(|readers| !readers.live(self.now).is_empty())
    }

    pub(super) fn has_share(&self, token: OwnerToken) -> bool {
        self.share_end(token).is_some()
    }

    fn share_end(&self, token: OwnerToken) -> Option<Instant> {
        self.readers()?.end_of(token, self.now)
    }

    /// Whether the token has the lock, alone or with others.
    fn holds(&self) -> bool {
        self.is_owner() || self.has_share(self.token)
    }

    /// Whether others have the lock that do not go with the token.
    fn is_held_against(&self) -> bool {
        let has_others = |readers: &Readers| readers.has_others(self.token, self.now);
        self.owner().is_some() || self.mode == Mode::Exclusive && self.readers().is_some_and(has_others)
    }

    /// Whether an earlier token waits that does not go with this one.
    fn is_behind_others(&self) -> bool {
        let is_earlier = |first: Option<OwnerToken>| first.is_some_and(|first| first < self.token);
        let Some(queue) = self.queue() else { return false };
        match self.mode {
            Mode::Exclusive => is_earlier(queue.first()) || is_earlier(queue.first_sharing()),
            Mode::Shared | Mode::Permit => is_earlier(queue.first()) && self.applies(Rule::WaitersComeFirst),
        }
    }

    /// Whether the token was not in the queue before.
    fn join_among(&mut self) -> bool {
        let (token, mode, now) = (self.token, self.mode, self.now);
        self.state.queues.entry(self.key.name().into()).or_insert_with(|| Queue::new(now)).join(token, mode, now)
    }

    /// `token` has the lock for `ttl`.
    pub(super) fn take(&mut self, token: OwnerToken, mode: Mode, ttl: Duration) {
        match mode {
            Mode::Exclusive => {
                self.state.readers.remove(self.key.name());
                self.own(token, ttl, self.is_waited_for());
            }
            Mode::Shared | Mode::Permit => self.take_share(token, ttl),
        }
    }

    /// `token` has a share for `ttl`. If it had the lock alone, it has not any more.
    pub(super) fn take_share(&mut self, token: OwnerToken, ttl: Duration) {
        let now = self.now;
        self.state.locks.remove(self.key.name());
        let readers = self.state.readers.entry(self.key.name().into()).or_insert_with(|| Readers::new(now));
        readers.put(token, now.after(ttl), now);
    }

    /// `token` does not have the lock any more, if it had.
    pub(super) fn drop_hold_of(&mut self, token: OwnerToken) {
        let (name, now) = (self.key.name(), self.now);
        if self.owner() == Some(token) {
            self.state.locks.remove(name);
        }
        if let Some(readers) = self.state.readers.get_mut(name) {
            readers.remove(token, now);
            if readers.is_gone(now) {
                self.state.readers.remove(name);
            }
        }
    }

    /// How much is left of what the token has.
    fn hold_left(&self) -> Duration {
        let share = || self.share_end(self.token).map(|end| end.since(self.now));
        self.left().filter(|_| self.is_owner()).or_else(share).unwrap_or_default()
    }

    /// How much is left until the key expires.
    fn key_left(&self) -> Option<Duration> {
        self.left().or_else(|| self.readers().map(|readers| readers.expires().since(self.now)))
    }
}
