//! Guard of the locked state of an acquisition.

use super::loss_watchers::Calls;
use super::state::State;
use crate::observe::held_back::Untold;
use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

/// Locked state. On drop, it first unlocks the mutex, then wakes the called watchers and logs the outcomes of releases.
pub(super) struct StateGuard<'a> {
    // Fields are dropped in this order: the mutex is unlocked before the watchers are woken. There are rarely any, and
    // every step of every call checks that.
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
