//! A nested call's part in the lock of a call that encloses it.

use super::tenure::{Tenure, Views};
use crate::client::acquisition::Acquisition;
use crate::error::LockError;
use crate::request::Place;
use crate::time::clock::Instant;
use std::time::Duration;

/// A nested call's part in the lock of a call that encloses it: without a lease of its own, and lost with the lock. Dropped,
/// it ends, and the lock stays where it is.
pub(crate) struct View(Tenure);

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
        Self(Tenure::of_view(enclosing, by, place, now, must_end))
    }

    pub(crate) const fn tenure(&self) -> &Tenure {
        &self.0
    }

    pub(crate) fn acquisition(&self) -> &Acquisition {
        self.0.acquisition()
    }

    /// Ends the view while its guard is there; the next call that waits for one has its turn.
    pub(crate) fn give_back(&self) {
        if self.0.end_view() {
            // Those who wait for the loss of the view are watchers of the lock. None is left when the guard is dropped.
            self.acquisition().call_watchers();
        }
    }

    /// Whether it was ended, and not lost.
    pub(crate) fn is_released(&self) -> bool {
        self.0.is_released()
    }

    /// How much longer the lock is provably held.
    pub(crate) fn remaining(&self) -> Duration {
        if self.is_released() { Duration::ZERO } else { self.0.remaining() }
    }

    /// Why it is not held.
    pub(crate) fn loss(&self) -> LockError {
        self.0.loss()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.0.end_view();
    }
}
