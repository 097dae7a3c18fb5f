//! The part of one call in a lock that several calls of the process have by one token.

use super::LocalQueue;
use super::local_turn::LocalTurn;
use crate::client::acquisition::{Acquisition, ConfirmedRelease};
use crate::stats::SiteId;
use crate::time::clock::Instant;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Dropped, it leaves. The last one gives the token back.
pub(crate) struct Member {
    local: Arc<LocalQueue>,
    acquisition: Arc<Acquisition>,
    /// The turn of the token, which is that of all members.
    turn: u32,
    number: u32,
    has_left: AtomicBool,
}

impl Member {
    pub(super) fn new(local: &Arc<LocalQueue>, acquisition: &Arc<Acquisition>, turn: u32, number: u32) -> Self {
        let (local, acquisition, has_left) = (Arc::clone(local), Arc::clone(acquisition), AtomicBool::new(false));
        Self { local, acquisition, turn, number, has_left }
    }

    /// The token and its turn, which are those of all members.
    pub(crate) fn shared(&self) -> (Arc<Acquisition>, u32) {
        (Arc::clone(&self.acquisition), self.turn)
    }

    /// Its number among the members.
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// Whether there is anything to go on with.
    pub(crate) fn is_held(&self) -> bool {
        !self.acquisition.validity().is_zero()
    }

    /// Its call goes on from `now`, and is done by `must_end`, if by any time.
    pub(crate) fn begin(&self, site: SiteId, must_end: Option<Instant>, now: Instant) {
        if let Some(counted_for) = self.acquisition.begin_member(self.number, site, must_end, now) {
            self.local.watch(&self.acquisition, counted_for, now);
        }
    }

    /// Leaves.
    pub(crate) fn leave(&self) {
        drop(self.last_turn());
    }

    /// The same. There are answers to wait for only when it was the last one.
    pub(crate) fn leave_confirmed(&self) -> Option<ConfirmedRelease> {
        self.last_turn()?.end()
    }

    /// The turn of the token, to be ended by the last one.
    fn last_turn(&self) -> Option<LocalTurn> {
        let leaves = !self.has_left.swap(true, Ordering::AcqRel);
        if !leaves || !self.acquisition.part(self.number) {
            return None;
        }
        self.local.close_to_readers(&self.acquisition);
        Some(LocalTurn::numbered(&self.local, Arc::clone(&self.acquisition), self.turn))
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
