//! The state of an acquisition, under its mutex.

use super::loss_watchers::Calls;
use super::state::State;
use crate::observe::held_back::Untold;
use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

/// Wakes those who watch the lock when the mutex is free again, and tells what became of releases.
pub(super) struct StateGuard<'a> {
    // Fields are dropped in this order: first the mutex is free, then those who were called are woken. Mostly there are none, and
    // that is looked at in every step of every call.
    state: MutexGuard<'a, State>,
    calls: Option<Calls>,
    untold: Option<Vec<Untold>>,
}

impl<'a> StateGuard<'a> {
    pub(super) const fn new(state: MutexGuard<'a, State>) -> Self {
        Self { state, calls: None, untold: None }
    }
}

impl Drop for StateGuard<'_> {
    fn drop(&mut self) {
        if self.state.watchers.is_called() {
            self.calls = Some(self.state.watchers.called());
        }
        if self.state.has_rare() {
            self.untold = self.state.take_untold();
        }
    }
}

impl Deref for StateGuard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for StateGuard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}
