//! A nested call's part in the lock of a call that encloses it; and that of a call in a lock that several have by one token.

use super::tenure::{Admission, Tenure, Views};
use crate::client::acquisition::{Acquisition, ConfirmedRelease};
use crate::client::local_queue::Member;
use crate::error::LockError;
use crate::request::Place;
use crate::stats::SiteId;
use crate::time::clock::Instant;
use std::time::Duration;

/// A nested call's part in the lock of a call that encloses it: without a lease of its own, and lost with the lock. Dropped,
/// it ends, and the lock stays where it is.
///
/// That of one of several calls with one token is the same, except that the last one of them gives the lock back.
pub(crate) struct View {
    tenure: Tenure,
}

impl View {
    /// Enters the lock of `enclosing` at once, for the `longest` time from `now` on.
    ///
    /// # Errors
    /// `enclosing` when another call has a view of it, or when it has ended.
    pub(crate) fn try_enter(
        enclosing: Tenure,
        place: Place,
        longest: Option<Duration>,
        now: Instant,
    ) -> Result<Self, Tenure> {
        match enclosing.views().filter(|views| views.try_admit(place)) {
            Some(views) => Ok(Self::admitted(enclosing, views, place, longest, now)),
            None => Err(enclosing),
        }
    }

    /// Enters behind those that came before; `None` when the call that encloses all of them has the lock no more.
    ///
    /// # Cancel safety
    /// The place is given up.
    pub(crate) async fn enter(enclosing: &Tenure, place: Place, longest: Option<Duration>) -> Option<Self> {
        let views = enclosing.views()?;
        let is_admitted = views.admit(place).await;
        let now = enclosing.shared().clock.now();
        is_admitted.then(|| Self::admitted(enclosing.clone(), views, place, longest, now))
    }

    fn admitted(enclosing: Tenure, by: Views, place: Place, longest: Option<Duration>, now: Instant) -> Self {
        let must_end = longest.map(|longest| now.after(longest));
        Self { tenure: Tenure::of_view(enclosing, Admission::Nested(by), place, now, must_end) }
    }

    /// That of one of several calls which have the lock by one token, for the `longest` time from `now` on. It counts by `site`.
    pub(crate) fn of_member(
        member: Member,
        (place, site): (Place, SiteId),
        longest: Option<Duration>,
        now: Instant,
    ) -> Self {
        let must_end = longest.map(|longest| now.after(longest));
        member.begin(site, must_end, now);
        // What all members have of the lock.
        let (acquisition, turn) = member.shared();
        let enclosing = Tenure::Turn { acquisition, turn, place };
        Self { tenure: Tenure::of_view(enclosing, Admission::Member(member), place, now, must_end) }
    }

    pub(crate) const fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    pub(crate) fn acquisition(&self) -> &Acquisition {
        self.tenure.acquisition()
    }

    /// Ends the view while its guard is there; the next call that waits for one has its turn. There are answers to wait for only
    /// when the lock is given back by it.
    pub(crate) fn give_back(&self) -> Option<ConfirmedRelease> {
        if self.tenure.end_view() {
            // Those who wait for the loss of the view are watchers of the lock. None is left when the guard is dropped.
            self.tenure.call_watchers();
        }
        self.tenure.member()?.leave_confirmed()
    }

    /// Why the call has lost the lock; not when its own time is over, while others have it by the same token.
    pub(crate) fn loss_of_lock(&self) -> Option<LockError> {
        let has_it = self.is_released() || self.tenure.member().is_some() && !self.acquisition().validity().is_zero();
        (!has_it && !self.tenure.is_held()).then(|| self.loss())
    }

    /// Whether it was ended, and not lost.
    pub(crate) fn is_released(&self) -> bool {
        self.tenure.is_released()
    }

    /// How much longer the lock is provably held.
    pub(crate) fn remaining(&self) -> Duration {
        if self.is_released() { Duration::ZERO } else { self.tenure.remaining() }
    }

    /// Why it is not held.
    pub(crate) fn loss(&self) -> LockError {
        self.tenure.loss()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.tenure.end_view();
        // When the view has ended. What bodies have seen of it may be there for longer.
        self.tenure.member().into_iter().for_each(Member::leave);
    }
}
