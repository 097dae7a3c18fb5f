//! The tenure of a guard: made when somebody wants to see it, ended with the guard.

use super::Tenure;
use crate::client::acquisition::Acquisition;
use crate::protocol::fencing_token::FencingToken;
use crate::request::Place;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The tenure of a guard. Guards without a body never need one. A mutex and not a `OnceLock` beside the rest: this is in the
/// future of every annotated function, and a tenure that is made while the guard ends must end as well.
pub(crate) struct OwnTenure(Mutex<Made>);

enum Made {
    NotYet { place: Place, fencing_token: Option<FencingToken>, has_ended: bool },
    Made(Arc<Tenure>),
}

impl OwnTenure {
    pub(crate) const fn new(place: Place, fencing_token: Option<FencingToken>) -> Self {
        Self(Mutex::new(Made::NotYet { place, fencing_token, has_ended: false }))
    }

    /// The tenure, of a call that has the lock with what `acquisition` gives.
    pub(crate) fn shown(&self, acquisition: impl FnOnce() -> Arc<Acquisition>) -> Arc<Tenure> {
        let mut made = self.lock();
        match *made {
            Made::Made(ref tenure) => Arc::clone(tenure),
            Made::NotYet { place, fencing_token, has_ended } => {
                let tenure = Tenure::of_turn(acquisition(), place, fencing_token);
                if has_ended {
                    // Nobody has a view of it yet, so nobody is woken under the mutex.
                    tenure.end();
                }
                let tenure = Arc::new(tenure);
                *made = Made::Made(Arc::clone(&tenure));
                tenure
            }
        }
    }

    /// The call has the lock no more. This comes before the lock may be another call's.
    pub(crate) fn end(&self) {
        // What ends wakes others, who may run at once and look at the guard: so it is outside of the mutex.
        if let Some(tenure) = self.ended() {
            tenure.end();
        }
    }

    /// The tenure that is to end, if one was made; one that is made later is made as ended.
    fn ended(&self) -> Option<Arc<Tenure>> {
        match &mut *self.lock() {
            Made::Made(tenure) => Some(Arc::clone(tenure)),
            Made::NotYet { has_ended, .. } => {
                *has_ended = true;
                None
            }
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
