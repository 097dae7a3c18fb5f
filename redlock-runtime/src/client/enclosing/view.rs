//! Share of a nested call in the lock of an enclosing call, or of a call in a lock that several calls hold under one
//! token.

use super::tenure::{Admission, BodyHold, Views};
use crate::client::acquisition::{Acquisition, ConfirmedRelease};
use crate::client::local_queue::Member;
use crate::error::LockError;
use crate::request::Place;
use crate::stats::SiteId;
use crate::time::clock::Instant;
use std::time::Duration;

/// Share of a nested call in the lock of an enclosing call. It has no lease, and is lost with the lock. On drop, it
/// ends, and the lock stays held.
///
/// The share of one of several calls with one token is similar, but the last one releases the lock.
pub(crate) struct ReentrantEntry {
    tenure: BodyHold,
}

impl ReentrantEntry {
    /// Enters the lock of `enclosing` at once, for at most the `longest` time from `now` on.
    ///
    /// # Errors
    /// `enclosing`, if another call has a view of it, or if it has ended.
    pub(crate) fn try_enter(
        enclosing: BodyHold,
        place: Place,
        longest: Option<Duration>,
        now: Instant,
    ) -> Result<Self, BodyHold> {
        match enclosing.views().filter(|views| views.try_admit(place)) {
            Some(views) => Ok(Self::admitted(enclosing, views, place, longest, now)),
            None => Err(enclosing),
        }
    }

    /// Enters after the calls before it. Returns `None` if the enclosing call does not have the lock any longer.
    ///
    /// # Cancel safety
    /// The place is given up.
    pub(crate) async fn enter(enclosing: &BodyHold, place: Place, longest: Option<Duration>) -> Option<Self> {
        let views = enclosing.views()?;
        let is_admitted = views.admit(place).await;
        let now = enclosing.shared().clock.now();
        is_admitted.then(|| Self::admitted(enclosing.clone(), views, place, longest, now))
    }

    fn admitted(enclosing: BodyHold, by: Views, place: Place, longest: Option<Duration>, now: Instant) -> Self {
        let must_end = longest.map(|longest| now.after(longest));
        Self { tenure: BodyHold::for_view(enclosing, Admission::Nested(by), place, now, must_end) }
    }

    /// Creates the share of one of several calls with one token, for at most the `longest` time from `now` on. It is
    /// counted for `site`.
    pub(crate) fn of_member(
        member: Member,
        (place, site): (Place, SiteId),
        longest: Option<Duration>,
        now: Instant,
    ) -> Self {
        let must_end = longest.map(|longest| now.after(longest));
        member.begin(site, must_end, now);
        // The lock as all members have it.
        let (acquisition, turn) = member.shared();
        let enclosing = BodyHold::Turn { acquisition, turn, place };
        Self { tenure: BodyHold::for_view(enclosing, Admission::Member(member), place, now, must_end) }
    }

    pub(crate) const fn tenure(&self) -> &BodyHold {
        &self.tenure
    }

    pub(crate) fn acquisition(&self) -> &Acquisition {
        self.tenure.acquisition()
    }

    /// Ends the view while its guard still exists, and lets the next waiting call in. Returns the pending answers if
    /// this releases the lock.
    pub(crate) fn give_back(&self) -> Option<ConfirmedRelease> {
        if self.tenure.end_view() {
            // Tasks that wait for the loss of the view are watchers of the lock. When the guard is dropped, none is
            // left.
            self.tenure.wake_watchers();
        }
        self.tenure.member()?.leave_confirmed()
    }

    /// Returns the reason that the call has lost the lock. The end of its own time is not a loss while other calls have
    /// the lock under the same token.
    pub(crate) fn loss_of_lock(&self) -> Option<LockError> {
        let has_it = self.is_released() || self.tenure.member().is_some() && !self.acquisition().validity().is_zero();
        (!has_it && !self.tenure.is_held()).then(|| self.loss())
    }

    /// Returns `true` if the view was ended, and not lost.
    pub(crate) fn is_released(&self) -> bool {
        self.tenure.is_released()
    }

    /// Returns the time for which the lock is still provably held.
    pub(crate) fn remaining(&self) -> Duration {
        if self.is_released() { Duration::ZERO } else { self.tenure.remaining() }
    }

    /// Returns the reason that the lock is not held.
    pub(crate) fn loss(&self) -> LockError {
        self.tenure.loss()
    }
}

impl Drop for ReentrantEntry {
    fn drop(&mut self) {
        self.tenure.end_view();
        // After the view has ended. Tasks that have seen its body may keep the view for longer.
        self.tenure.member().into_iter().for_each(Member::leave);
    }
}
