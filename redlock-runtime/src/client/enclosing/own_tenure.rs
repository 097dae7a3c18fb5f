//! The tenure of a guard: made when somebody wants to see it, ended with the guard.

use super::Tenure;
use crate::client::acquisition::Acquisition;
use crate::protocol::fencing_token::FencingToken;
use crate::request::Place;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::Span;

/// The tenure of a guard. Guards without a body and without a number never need one. A mutex and not a `OnceLock` beside the
/// place: this is in the future of every annotated function, and a tenure that is made while the guard ends must end as well.
pub(crate) struct OwnTenure(Mutex<Made>);

enum Made {
    NotYet(Place),
    /// The guard has ended before anybody wanted to see it. Nobody is told the place of such a tenure, so it is not kept: with it
    /// this were 8 bytes larger.
    Ended,
    Made(Arc<Tenure>),
}

impl OwnTenure {
    pub(crate) const fn new(place: Place) -> Self {
        Self(Mutex::new(Made::NotYet(place)))
    }

    /// That of a call that is fenced, or has a span, made at once: number and span are in no future then.
    pub(crate) fn made(acquisition: Arc<Acquisition>, place: Place, token: Option<FencingToken>, span: Span) -> Self {
        let tenure = Tenure::of_turn(acquisition, place, token);
        tenure.observe(span);
        Self(Mutex::new(Made::Made(Arc::new(tenure))))
    }

    /// The tenure, if anybody has seen it or made it.
    pub(crate) fn if_made(&self) -> Option<Arc<Tenure>> {
        match *self.lock() {
            Made::Made(ref tenure) => Some(Arc::clone(tenure)),
            Made::NotYet(_) | Made::Ended => None,
        }
    }

    /// The tenure, of a call that has the lock with what `acquisition` gives.
    pub(crate) fn shown(&self, acquisition: impl FnOnce() -> Arc<Acquisition>) -> Arc<Tenure> {
        let mut made = self.lock();
        let (place, has_ended) = match *made {
            Made::Made(ref tenure) => return Arc::clone(tenure),
            Made::NotYet(place) => (place, false),
            Made::Ended => (Place::Call(Location::caller()), true),
        };
        let tenure = Arc::new(Tenure::of_turn(acquisition(), place, None));
        if has_ended {
            // Nobody has a view of it yet, so nobody is woken under the mutex.
            tenure.end();
        }
        *made = Made::Made(Arc::clone(&tenure));
        tenure
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
        let mut made = self.lock();
        match *made {
            Made::Made(ref tenure) => return Some(Arc::clone(tenure)),
            Made::NotYet(_) | Made::Ended => *made = Made::Ended,
        }
        None
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
