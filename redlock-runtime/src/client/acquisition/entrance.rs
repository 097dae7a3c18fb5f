//! Admission of calls to views of a lock.

use crate::request::Place;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Gate that admits one call at a time, and records its source location. An admitted call must [leave](Self::leave).
pub(crate) struct Entrance {
    permit: Semaphore,
    /// Set when a task inherits the lock.
    has_watchers: AtomicBool,
    admitted: Mutex<Option<Place>>,
}

impl Entrance {
    pub(crate) const fn new() -> Self {
        Self { permit: Semaphore::const_new(1), has_watchers: AtomicBool::new(false), admitted: Mutex::new(None) }
    }

    /// Admits the call at `place` now. Returns `false` while another one is inside, and after the entrance is closed.
    pub(crate) fn try_admit(&self, place: Place) -> bool {
        self.permit.try_acquire().map(|permit| self.note(permit, place)).is_ok()
    }

    /// Admits the call after those before it. Returns `false` if the entrance is closed.
    ///
    /// # Cancel safety
    /// The place in the queue is given up.
    pub(crate) async fn admit(&self, place: Place) -> bool {
        self.permit.acquire().await.map(|permit| self.note(permit, place)).is_ok()
    }

    fn note(&self, permit: SemaphorePermit<'_>, place: Place) {
        *self.admitted.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        permit.forget();
    }

    /// Returns the source location of the call that is inside, or of the last call inside.
    pub(crate) fn admitted(&self) -> Option<Place> {
        *self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the next call in.
    pub(crate) fn leave(&self) {
        self.permit.add_permits(1);
    }

    /// Records that a task has inherited the lock. It must be woken when the entrance is closed, even if no call is
    /// inside.
    pub(crate) fn expect_watchers(&self) {
        self.has_watchers.store(true, Ordering::Relaxed);
    }

    /// Closes the entrance. Returns `true` if the caller must wake the watchers of the lock: other calls may wait
    /// behind the call inside, or a task has inherited the lock.
    pub(crate) fn close(&self) -> bool {
        self.permit.close();
        // After that, every admitted call is counted, and no call is admitted between the two steps.
        //
        // `Relaxed` is enough for the flag. A dropped guard is no longer used to inherit. An explicit release may run
        // beside `inherit` on another thread, but it wakes the watchers in any case.
        self.permit.available_permits() == 0 || self.has_watchers.load(Ordering::Relaxed)
    }
}
