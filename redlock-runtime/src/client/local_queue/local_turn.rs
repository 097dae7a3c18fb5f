//! The right to represent the process at the nodes for one key, and how it goes from one call to the next.

use super::local_wait::Waiter;
use crate::client::acquisition::{Leaving, Ownership};
use crate::lock::OwnerToken;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Held by one call at a time. Dropped, it goes to the next in line: with the token if that may be passed on, otherwise
/// with another one, after its own was given back.
pub(crate) struct Seat {
    ownership: Arc<Ownership>,
    is_vacated: AtomicBool,
}

/// Another call of this process has taken the seat, because the lease had run out.
#[derive(Debug)]
pub(crate) struct TakenOver;

impl Seat {
    pub(super) const fn new(ownership: Arc<Ownership>) -> Self {
        Self { ownership, is_vacated: AtomicBool::new(false) }
    }

    /// The token with which the process has the key or asks for it.
    pub(crate) fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// Goes on with another token, after the one before was given back. Wake-ups find it from here on.
    ///
    /// # Errors
    /// [`TakenOver`] when the lease had run out and another call has the seat. Nothing has changed then.
    pub(crate) fn change(&mut self, ownership: Ownership) -> Result<(), TakenOver> {
        let (name, ownership) = (self.ownership.key().name(), Arc::new(ownership));
        match self.ownership.local_queue().shard(name).entries.get_mut(name) {
            Some(entry) if Arc::ptr_eq(&entry.ownership, &self.ownership) => entry.ownership = Arc::clone(&ownership),
            _ => return Err(TakenOver),
        }
        self.ownership.give_back();
        self.ownership = ownership;
        Ok(())
    }

    /// Goes on with another token for `ttl`, at the end of the queues.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub(crate) fn change_to_successor(&mut self, ttl: Duration) -> Result<(), TakenOver> {
        self.change(Ownership::successor(&self.ownership, ttl))
    }

    /// Whether the seat was left; what it had may be somebody else's by now.
    pub(crate) fn is_vacated(&self) -> bool {
        self.is_vacated.load(Ordering::Acquire)
    }

    /// Gives the lock back or passes it on. There are answers to wait for only when it was given back.
    pub(crate) fn leave(&self) -> Option<Leaving> {
        let mut leaving = None;
        self.vacate(|ownership| leaving = Some(ownership.leave()));
        leaving
    }

    /// Leaves the lock with the nodes, and returns the token that they have it under: one that they do not know when there
    /// is no lock to leave.
    pub(crate) fn abandon(&self) -> OwnerToken {
        // What was given back before may be another call's by now.
        if self.is_vacated() {
            return self.ownership.unused_token();
        }
        self.ownership.detach();
        self.vacate(|_| {});
        *self.ownership.token()
    }

    fn vacate(&self, mut give_back: impl FnMut(&Ownership)) {
        if self.is_vacated.swap(true, Ordering::AcqRel) {
            return;
        }
        let (mut ownership, mut has_token) = (Arc::clone(&self.ownership), true);
        while let Some(next) = Next::after(&ownership, has_token) {
            if has_token && !next.has_token {
                // Before anybody else here asks the nodes: commands stay in order.
                give_back(&self.ownership);
                has_token = false;
            }
            let Some((waiter, token)) = next.heir else { continue };
            match waiter.hand(Self::new(Arc::clone(&token))) {
                Ok(()) => return,
                // The call is gone: nothing has changed hands.
                Err(seat) => seat.is_vacated.store(true, Ordering::Release),
            }
            ownership = token;
        }
    }
}

/// Who has the seat next.
struct Next {
    heir: Option<(Arc<Waiter>, Arc<Ownership>)>,
    /// Whether the heir goes on with the token. Otherwise that is given back first.
    has_token: bool,
}

impl Next {
    /// Who follows the holder of `ownership`; `None` when that is nobody, and nothing is left to give back: then the
    /// entry is removed.
    fn after(ownership: &Arc<Ownership>, has_token: bool) -> Option<Self> {
        let name = ownership.key().name();
        let nobody = Self { heir: None, has_token: false };
        let mut shard = ownership.local_queue().shard(name);
        let entry = shard.entries.get_mut(name)?;
        if !Arc::ptr_eq(&entry.ownership, ownership) {
            // The lease had run out, and somebody else has taken the seat.
            return has_token.then_some(nobody);
        }
        let Some((_, waiter)) = entry.waiters.pop_first() else {
            if !has_token {
                shard.entries.remove(name);
            }
            return has_token.then_some(nobody);
        };
        let passes = has_token && ownership.pass(waiter.ttl, waiter.is_fenced);
        let token = if passes { Arc::clone(ownership) } else { Arc::new(ownership.successor(waiter.ttl)) };
        entry.ownership = Arc::clone(&token);
        Some(Self { heir: Some((waiter, token)), has_token: passes })
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
