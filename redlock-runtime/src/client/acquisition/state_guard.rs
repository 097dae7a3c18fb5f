//! The state of an acquisition, under its mutex.

use super::loss_watchers::Calls;
use super::state::State;
use crate::observe::held_back::Untold;
use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

/// Wakes those who watch the lock when the mutex is free again, and tells what became of releases.
pub(super) struct StateGuard<'a> {
    // Fields are dropped in this order: first the mutex is free, then those who were called are woken.
    state: MutexGuard<'a, State>,
    calls: Calls,
    untold: Vec<Untold>,
}

impl<'a> StateGuard<'a> {
    pub(super) fn new(state: MutexGuard<'a, State>) -> Self {
        Self { state, calls: Calls::default(), untold: Vec::new() }
    }
}

impl Drop for StateGuard<'_> {
    fn drop(&mut self) {
        if self.state.watchers.is_called() {
            self.calls = self.state.watchers.called();
        }
        self.untold = self.state.take_untold();
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
