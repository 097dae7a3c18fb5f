//! The right to represent the process at the nodes for one key, and how it goes from one call to the next.

use super::ticket::Waiter;
use crate::ownership::{Leaving, Ownership};
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// Held by one call at a time. Dropped, it goes to the next in line: with the token if that may be passed on, otherwise
/// with another one, after its own was given back.
pub(crate) struct Seat {
    ownership: Arc<Ownership>,
    is_vacated: bool,
}

impl Seat {
    pub(super) const fn new(ownership: Arc<Ownership>) -> Self {
        Self { ownership, is_vacated: false }
    }

    /// The token with which the process has the key or asks for it.
    pub(crate) fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// Goes on with another token, after the one before was given back.
    pub(crate) fn change(&mut self, ownership: Ownership) {
        self.ownership.give_back();
        self.ownership = Arc::new(ownership);
        self.announce(&self.ownership);
    }

    /// Goes on with another token for `ttl`, at the end of the queues.
    pub(crate) fn change_to_successor(&mut self, ttl: Duration) {
        self.change(Ownership::successor(&self.ownership, ttl));
    }

    /// Gives the lock back or passes it on. There are answers to wait for only when it was given back.
    pub(crate) fn leave(mut self) -> Option<Leaving> {
        let mut leaving = None;
        self.vacate(|ownership| leaving = Some(ownership.leave()));
        leaving
    }

    fn vacate(&mut self, mut give_back: impl FnMut(&Ownership)) {
        if mem::replace(&mut self.is_vacated, true) {
            return;
        }
        let mut has_token = true;
        while let Some(next) = self.next(has_token) {
            if has_token && !next.as_ref().is_some_and(|next| self.ownership.pass(next.ttl)) {
                // Before anybody else here asks the nodes: commands stay in order.
                give_back(&self.ownership);
                has_token = false;
            }
            let Some(next) = next else { continue };
            let ownership =
                if has_token { Arc::clone(&self.ownership) } else { Arc::new(self.ownership.successor(next.ttl)) };
            self.announce(&ownership);
            match next.hand(Self::new(ownership)) {
                Ok(()) => return,
                // The call is gone: nothing has changed hands.
                Err(mut seat) => seat.is_vacated = true,
            }
        }
    }

    /// The next in line; `Some(None)` when there is nobody but a token to give back first. With neither, the entry is
    /// removed.
    #[expect(clippy::option_option, reason = "nobody in line and nothing to do are two things")]
    fn next(&self, has_token: bool) -> Option<Option<Arc<Waiter>>> {
        let name = self.ownership.key().name();
        let mut shard = self.ownership.local_queue().shard(name);
        match shard.get_mut(name)?.waiters.pop_first() {
            Some((_, waiter)) => Some(Some(waiter)),
            None if has_token => Some(None),
            None => {
                shard.remove(name);
                None
            }
        }
    }

    /// From here on, wake-ups find `ownership`.
    fn announce(&self, ownership: &Arc<Ownership>) {
        let name = self.ownership.key().name();
        if let Some(entry) = self.ownership.local_queue().shard(name).get_mut(name) {
            entry.ownership = Arc::clone(ownership);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.vacate(Ownership::give_back);
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ownership.fmt(f)
    }
}
