//! What admits calls to views of a lock.

use crate::request::Place;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Admits one call at a time, and knows where that one was made. Whoever was admitted says when it [leaves](Self::leave).
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

    /// Admits the call at `place` now. `false` while another one is in, and when the entrance is closed.
    pub(crate) fn try_admit(&self, place: Place) -> bool {
        self.permit.try_acquire().map(|permit| self.note(permit, place)).is_ok()
    }

    /// Admits it after those that came before; `false` when the entrance is closed.
    ///
    /// # Cancel safety
    /// The place in line is given up.
    pub(crate) async fn admit(&self, place: Place) -> bool {
        self.permit.acquire().await.map(|permit| self.note(permit, place)).is_ok()
    }

    fn note(&self, permit: SemaphorePermit<'_>, place: Place) {
        *self.admitted.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        permit.forget();
    }

    /// Where the call was made that is in, or the last one that was.
    pub(crate) fn admitted(&self) -> Option<Place> {
        *self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next one may come in.
    pub(crate) fn leave(&self) {
        self.permit.add_permits(1);
    }

    /// A task has inherited the lock. It must be woken when the entrance is closed, even if no call is inside.
    pub(crate) fn expect_watchers(&self) {
        self.has_watchers.store(true, Ordering::Relaxed);
    }

    /// Admits no more calls. Returns `true` if the caller must wake the watchers of the lock: a call is inside and others may wait behind
    /// it, or a task has inherited the lock.
    pub(crate) fn close(&self) -> bool {
        self.permit.close();
        // After that: who was admitted before is counted, and nobody is admitted between the two.
        //
        // `Relaxed` is enough for the flag. A guard that is dropped is no longer used to inherit; and an explicit release, which may run
        // beside `inherit` on another thread, wakes the watchers in any case.
        self.permit.available_permits() == 0 || self.has_watchers.load(Ordering::Relaxed)
    }
}
