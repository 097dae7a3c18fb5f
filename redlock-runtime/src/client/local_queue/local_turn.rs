//! The turn of one call for one key, and how it goes from one call to the next.
//!
//! When a turn ends:
//!
//! 1. *The lock passes on* to the first call in line that is still there, with the same token, as long as
//!    `protocol/candidate/passing` allows it. No node hears of it.
//! 2. *Otherwise the token is released.* The entry names it until all its releases are sent, so that a wake-up about it
//!    finds it, and so that nobody else here asks the nodes before: commands stay in order.
//! 3. *Then the first call in line* that is still there has the turn with a new token, and asks the nodes for itself.
//! 4. *With nobody in line* the entry goes; or the lock stays held without a call ([`idle`](super::idle)), if the turn has
//!    just been dropped and its call wanted that.
//!
//! Calls that share a lock may wait for what one of them gets ([`together`](super::together)): it *founds* a token for all of
//! them, and should it go before it has the lock, the next one goes on in its place.
//!
//! A permit stands in a line of its own, and passes on to the calls that wait for permits of its key ([`passing_permits`](super::passing_permits)).
//!
//! At any of these, another call may have superseded the turn, because its lease had run out. Then the token is released,
//! and the entry is none of our business any more.

use super::LocalQueue;
use super::entry::{Entry, Next, Superseded};
use crate::client::acquisition::{Acquisition, ConfirmedRelease};
use crate::lock::OwnerToken;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Held by one call at a time. Dropped, it ends.
pub(crate) struct LocalTurn {
    local: Arc<LocalQueue>,
    acquisition: Arc<Acquisition>,
    /// Its number among the turns of the token.
    turn: u32,
    pub(super) role: Role,
}

/// What follows when a turn is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It ends.
    Own,
    /// Other calls wait for what this one gets, to share it: the next of them goes on with it.
    Founds,
    /// Nothing: it ends with the last of the calls that have the lock together.
    LeftToMembers,
}

impl LocalTurn {
    pub(super) fn new(local: &Arc<LocalQueue>, acquisition: Arc<Acquisition>) -> Self {
        let turn = acquisition.turn();
        Self::numbered(local, acquisition, turn)
    }

    /// That with this number.
    pub(super) fn numbered(local: &Arc<LocalQueue>, acquisition: Arc<Acquisition>, turn: u32) -> Self {
        Self { local: Arc::clone(local), acquisition, turn, role: Role::Own }
    }

    /// The same for a call that others wait for.
    pub(super) fn founding(local: &Arc<LocalQueue>, acquisition: Arc<Acquisition>, turn: u32) -> Self {
        let mut turn = Self::numbered(local, acquisition, turn);
        turn.role = Role::Founds;
        turn
    }

    /// The token with which the process has the key or asks for it.
    pub(crate) fn acquisition(&self) -> &Acquisition {
        &self.acquisition
    }

    /// The same with the number of this turn, for whoever looks at the turn from elsewhere.
    pub(crate) fn shared(&self) -> (Arc<Acquisition>, u32) {
        (Arc::clone(&self.acquisition), self.turn)
    }

    /// Goes on with another token, after the one before was released. That one is released in any case.
    ///
    /// # Errors
    /// [`Superseded`] when another call has the turn.
    pub(crate) fn change(&mut self, acquisition: Acquisition) -> Result<(), Superseded> {
        let acquisition = Arc::new(acquisition);
        // Before the entry names another one: until then, a wake-up about the token finds it.
        self.acquisition.release();
        self.local.go_on_as(&self.acquisition, &acquisition)?;
        if self.role == Role::Founds {
            self.local.founds_as(&self.acquisition, &acquisition);
        }
        (self.turn, self.acquisition) = (acquisition.turn(), acquisition);
        Ok(())
    }

    /// Shares the lock with others from now on, unless the turn has ended.
    pub(crate) fn lower(&self) {
        let note = || {
            #[cfg(feature = "testing")]
            self.local.shared.stays.lower(*self.acquisition.token(), self.turn);
        };
        if self.acquisition.lower(self.turn, note) {
            // Nodes that could not be told are asked soon.
            self.local.look_at(&self.acquisition);
        }
    }

    /// Whether the turn has ended; what it had may be another call's by now.
    pub(crate) fn has_ended(&self) -> bool {
        self.acquisition.turn() != self.turn
    }

    /// The key of a window is free again when the turn ends.
    pub(crate) fn reopen_window(&self) {
        self.acquisition.reopen_window(self.turn);
    }

    /// Ends the turn: passes the lock on, or gives it back. There are answers to wait for only when it was given back.
    pub(crate) fn end(&self) -> Option<ConfirmedRelease> {
        let mut released = None;
        self.end_with(false, |acquisition| released = Some(acquisition.release_confirmed()));
        released
    }

    /// Ends the turn and leaves the lock with the nodes. Returns the token that they have it under: one that they do not
    /// know when there is no lock to leave.
    pub(crate) fn detach(&self) -> OwnerToken {
        // What was given back before may be another call's by now.
        if self.has_ended() {
            return self.local.shared.new_token();
        }
        self.acquisition.detach();
        self.end_with(false, |_| {});
        *self.acquisition.token()
    }

    /// Passes the lock on if that may be, or leaves it idle if it `may_linger`; otherwise lets `release` give the token back,
    /// and the next call has the turn.
    fn end_with(&self, may_linger: bool, release: impl FnOnce(&Acquisition)) {
        #[cfg(feature = "testing")]
        self.local.shared.stays.end(*self.acquisition.token(), self.turn);
        if !self.acquisition.end_turn(self.turn) || self.passes_on() {
            return;
        }
        if may_linger && self.local.keep(&self.acquisition) {
            return;
        }
        release(&self.acquisition);
        self.succeed();
    }

    /// Whether a call in line has the lock now.
    fn passes_on(&self) -> bool {
        if self.acquisition.is_permit() {
            return self.local.passes_permit_on(&self.acquisition);
        }
        while let Some(Next::Passes(waiter, calls)) = self.next() {
            let is_handed = waiter.hand(&self.acquisition);
            // What is told of this turn is none of the next one's business.
            drop(calls);
            if is_handed {
                return true;
            }
        }
        false
    }

    /// What is to become of the turn, unless another call has it.
    fn next(&self) -> Option<Next> {
        let name = &*self.acquisition.line();
        let mut shard = self.local.shard(name);
        shard.entries.get_mut(name).filter(|entry| entry.is_of(&self.acquisition)).map(Entry::next)
    }

    /// Gives the turn to the first call in line that is there, with a new token.
    fn succeed(&self) {
        let (name, mut ours) = (&*self.acquisition.line(), Arc::clone(&self.acquisition));
        loop {
            let mut shard = self.local.shard(name);
            let Some(entry) = shard.entries.get_mut(name).filter(|entry| entry.is_of(&ours)) else { return };
            let Some((waiter, successor)) = entry.succeed() else {
                shard.remove(name);
                return;
            };
            drop(shard);
            if waiter.hand(&successor) {
                return;
            }
            ours = successor;
        }
    }

    /// Goes on with another token for `ttl`, at the end of the queues.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub(crate) fn change_to_successor(&mut self, ttl: Duration) -> Result<(), Superseded> {
        self.change(self.acquisition.successor(ttl))
    }
}

impl Drop for LocalTurn {
    fn drop(&mut self) {
        match self.role {
            Role::Own => self.end_with(true, Acquisition::release),
            Role::Founds => {
                if let Some(left) = self.local.next_founder(&self.acquisition, self.turn) {
                    self.end_with(true, Acquisition::release);
                    // After the releases: they ask the nodes for themselves.
                    for reader in left {
                        reader.goes_alone();
                    }
                }
            }
            Role::LeftToMembers => {}
        }
    }
}

impl fmt::Debug for LocalTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.acquisition.fmt(f)
    }
}
