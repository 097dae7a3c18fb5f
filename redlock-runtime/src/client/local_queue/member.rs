//! Share of one call in a lock that several calls of the process hold under one token.

use super::LocalQueue;
use super::local_owner::LocalOwner;
use crate::client::acquisition::{Acquisition, ConfirmedRelease};
use crate::stats::SiteId;
use crate::time::clock::Instant;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Share of one call. It is left on drop, and the last share releases the token.
pub(crate) struct Member {
    local: Arc<LocalQueue>,
    acquisition: Arc<Acquisition>,
    /// Turn of the token, which all members have in common.
    turn: u32,
    number: u32,
    has_left: AtomicBool,
}

impl Member {
    pub(super) fn new(local: &Arc<LocalQueue>, acquisition: &Arc<Acquisition>, turn: u32, number: u32) -> Self {
        let (local, acquisition, has_left) = (Arc::clone(local), Arc::clone(acquisition), AtomicBool::new(false));
        Self { local, acquisition, turn, number, has_left }
    }

    /// Returns the token and its turn, which all members have in common.
    pub(crate) fn shared(&self) -> (Arc<Acquisition>, u32) {
        (Arc::clone(&self.acquisition), self.turn)
    }

    /// Returns the number of this member.
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// Returns `true` if the lock is still held.
    pub(crate) fn is_held(&self) -> bool {
        !self.acquisition.validity().is_zero()
    }

    /// Begins the use of the lock at `now`. The call must be done by `must_end`, if there is such a time.
    pub(crate) fn begin(&self, site: SiteId, must_end: Option<Instant>, now: Instant) {
        if let Some(check_within) = self.acquisition.begin_member(self.number, site, must_end, now) {
            self.local.watch(&self.acquisition, check_within, now);
        }
    }

    /// Leaves the share; the last one releases the token.
    pub(crate) fn leave(&self) {
        drop(self.last_turn());
    }

    /// Leaves the share. Returns the pending answers if it was the last one.
    pub(crate) fn leave_confirmed(&self) -> Option<ConfirmedRelease> {
        self.last_turn()?.end()
    }

    /// Leaves the share. Returns the turn of the token if it was the last one.
    fn last_turn(&self) -> Option<LocalOwner> {
        let leaves = !self.has_left.swap(true, Ordering::AcqRel);
        if !leaves || !self.acquisition.part(self.number) {
            return None;
        }
        self.local.close_to_readers(&self.acquisition);
        Some(LocalOwner::numbered(&self.local, Arc::clone(&self.acquisition), self.turn))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("number", &self.number)
            .field("acquisition", &self.acquisition)
            .finish_non_exhaustive()
    }
}
