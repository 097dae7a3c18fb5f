//! Local turn: the right of one call to act for a key, and its transfer from one call to the next.
//!
//! At the end of a turn:
//!
//! 1. *The lock passes on* to the first waiting call that is still there, with the same token, as long as
//!    `protocol/candidate/passing` allows it. No command is sent.
//! 2. *Otherwise the token is released.* The entry contains it until all its releases are sent. Wake-ups about it still
//!    find it, and no other call of the process asks the nodes before: commands stay in order.
//! 3. *Then the first waiting call* that is still there gets the turn with a new token, and asks the nodes.
//! 4. *If no call waits*, the entry is removed. Or the lock becomes idle ([`idle`](super::idle)), if the turn has just
//!    been dropped and its call wanted that.
//!
//! Calls that share a lock may wait for the result of one of them ([`together`](super::together)). This call *founds* a
//! token for all of them. If it ends before it gets the lock, the next call takes its place.
//!
//! A permit has its own entry, and passes to the calls that wait for permits of its key
//! ([`passing_permits`](super::passing_permits)).
//!
//! At any of these steps, another call may have superseded the turn, because its lease had ended. Then the token is
//! released, and the turn does not change the entry.

use super::LocalQueue;
use super::entry::{Entry, Next, Superseded};
use crate::client::acquisition::{Acquisition, ConfirmedRelease};
use crate::lock::OwnerToken;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Local turn of one call at a time. The turn ends on drop.
pub(crate) struct LocalOwner {
    local: Arc<LocalQueue>,
    acquisition: Arc<Acquisition>,
    /// Number of the turn among the turns of the token.
    turn: u32,
    pub(super) role: Role,
}

/// Effect of dropping a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The turn ends.
    Own,
    /// Other calls wait for the result, to share the lock: the next of them takes over.
    Founds,
    /// No effect: the turn ends with the last of the calls that share the lock.
    LeftToMembers,
}

impl LocalOwner {
    pub(super) fn new(local: &Arc<LocalQueue>, acquisition: Arc<Acquisition>) -> Self {
        let turn = acquisition.turn();
        Self::numbered(local, acquisition, turn)
    }

    /// Creates the turn with this number.
    pub(super) fn numbered(local: &Arc<LocalQueue>, acquisition: Arc<Acquisition>, turn: u32) -> Self {
        Self { local: Arc::clone(local), acquisition, turn, role: Role::Own }
    }

    /// Creates the turn of a call that others wait for.
    pub(super) fn founding(local: &Arc<LocalQueue>, acquisition: Arc<Acquisition>, turn: u32) -> Self {
        let mut turn = Self::numbered(local, acquisition, turn);
        turn.role = Role::Founds;
        turn
    }

    /// Returns the token with which the process has the key or asks for it.
    pub(crate) fn acquisition(&self) -> &Acquisition {
        &self.acquisition
    }

    /// Returns the token together with the number of this turn, for observers.
    pub(crate) fn shared(&self) -> (Arc<Acquisition>, u32) {
        (Arc::clone(&self.acquisition), self.turn)
    }

    /// Continues with another token, after the previous one was released. The release happens in any case.
    ///
    /// # Errors
    /// [`Superseded`] if another call has the turn.
    pub(crate) fn change(&mut self, acquisition: Acquisition) -> Result<(), Superseded> {
        let acquisition = Arc::new(acquisition);
        // Before the entry is changed, so that a wake-up about the token still finds it.
        self.acquisition.release();
        self.local.go_on_as(&self.acquisition, &acquisition)?;
        if self.role == Role::Founds {
            self.local.replace_gathering_token(&self.acquisition, &acquisition);
        }
        (self.turn, self.acquisition) = (acquisition.turn(), acquisition);
        Ok(())
    }

    /// Downgrades the lock to a shared one, unless the turn has ended.
    pub(crate) fn lower(&self) {
        let note = || {
            #[cfg(feature = "testing")]
            self.local.shared.stays.lower(*self.acquisition.token(), self.turn);
        };
        if self.acquisition.lower(self.turn, note) {
            // Nodes that could not be informed are asked soon.
            self.local.look_at(&self.acquisition);
        }
    }

    /// Returns `true` if the turn has ended. Another call may have the token by now.
    pub(crate) fn has_ended(&self) -> bool {
        self.acquisition.turn() != self.turn
    }

    /// Frees the key of a window when the turn ends.
    pub(crate) fn reopen_window(&self) {
        self.acquisition.reopen_window(self.turn);
    }

    /// Ends the turn: passes the lock on, or releases it. Returns the pending answers if it was released.
    pub(crate) fn end(&self) -> Option<ConfirmedRelease> {
        let mut released = None;
        self.end_with(false, |acquisition| released = Some(acquisition.release_confirmed()));
        released
    }

    /// Ends the turn and leaves the lock at the nodes. Returns the token under which they store it. Without a lock to
    /// leave, the nodes do not know that token.
    pub(crate) fn detach(&self) -> OwnerToken {
        // If the lock was released before, another call may have it by now.
        if self.has_ended() {
            return self.local.shared.new_token();
        }
        self.acquisition.detach();
        self.end_with(false, |_| {});
        *self.acquisition.token()
    }

    /// Passes the lock on if possible, or leaves it idle if it `may_linger`. Otherwise, lets `release` release the
    /// token, and gives the turn to the next call.
    fn end_with(&self, may_linger: bool, release: impl FnOnce(&Acquisition)) {
        #[cfg(feature = "testing")]
        self.local.shared.stays.end(*self.acquisition.token(), self.turn);
        if !self.acquisition.end_turn(self.turn) || self.pass_to_next() {
            return;
        }
        if may_linger && self.local.keep(&self.acquisition) {
            return;
        }
        release(&self.acquisition);
        self.succeed();
    }

    /// Passes the lock on. Returns `true` if a waiting call got it.
    fn pass_to_next(&self) -> bool {
        if self.acquisition.is_permit() {
            return self.local.pass_permit_on(&self.acquisition);
        }
        while let Some(Next::Passes(waiter, calls)) = self.next() {
            let is_handed = waiter.hand(&self.acquisition);
            // Events of this turn do not concern the next one.
            drop(calls);
            if is_handed {
                return true;
            }
        }
        false
    }

    /// Decides about the end of the turn, unless another call has the turn.
    fn next(&self) -> Option<Next> {
        let name = &*self.acquisition.line();
        let mut shard = self.local.shard(name);
        shard.entries.get_mut(name).filter(|entry| entry.is_of(&self.acquisition)).map(Entry::next)
    }

    /// Gives the turn to the first waiting call that is still there, with a new token.
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

    /// Continues with another token for `ttl`, at the end of the queues.
    ///
    /// # Errors
    /// The errors of [`change`](Self::change).
    pub(crate) fn change_to_successor(&mut self, ttl: Duration) -> Result<(), Superseded> {
        self.change(self.acquisition.successor(ttl))
    }
}

impl Drop for LocalOwner {
    fn drop(&mut self) {
        match self.role {
            Role::Own => self.end_with(true, Acquisition::release),
            Role::Founds => {
                if let Some(left) = self.local.next_leader(&self.acquisition, self.turn) {
                    self.end_with(true, Acquisition::release);
                    // After the releases, because these calls ask the nodes themselves.
                    for reader in left {
                        reader.notify_alone();
                    }
                }
            }
            Role::LeftToMembers => {}
        }
    }
}

impl fmt::Debug for LocalOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.acquisition.fmt(f)
    }
}
