//! The tenure of a guard: made when somebody wants to see it, ended with the guard.

use super::Tenure;
use crate::client::acquisition::Acquisition;
use crate::request::Place;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The tenure of a guard. Guards without a body never need one. A mutex and not a `OnceLock` beside the place: this is in the
/// future of every annotated function.
pub(crate) struct OwnTenure(Mutex<Made>);

enum Made {
    NotYet(Place),
    Made(Arc<Tenure>),
}

impl OwnTenure {
    pub(crate) const fn new(place: Place) -> Self {
        Self(Mutex::new(Made::NotYet(place)))
    }

    /// The tenure, of a call that has the lock with what `acquisition` gives.
    pub(crate) fn shown(&self, acquisition: impl FnOnce() -> Arc<Acquisition>) -> Arc<Tenure> {
        let mut made = self.lock();
        match &*made {
            Made::Made(tenure) => Arc::clone(tenure),
            Made::NotYet(place) => {
                let tenure = Arc::new(Tenure::of_turn(acquisition(), *place));
                *made = Made::Made(Arc::clone(&tenure));
                tenure
            }
        }
    }

    /// The call has the lock no more. This comes before the lock may be another call's.
    pub(crate) fn end(&self) {
        if let Made::Made(tenure) = &*self.lock() {
            tenure.end();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Made> {
        // No code that can panic runs under this mutex.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OwnTenure {
    fn drop(&mut self) {
        self.end();
    }
}
