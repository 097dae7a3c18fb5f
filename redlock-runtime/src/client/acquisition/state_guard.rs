//! The standing of a token, under its mutex.

use crate::protocol::candidate::Standing;
use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;
use std::task::Waker;

/// Wakes those who watch the lock when the mutex is free again: whoever is woken may run at once, in the same thread, and
/// look at the lock.
pub(super) struct Access<'a> {
    // Fields are dropped in this order.
    standing: MutexGuard<'a, Standing>,
    called: Called,
}

struct Called(Vec<(u64, Waker)>);

impl<'a> Access<'a> {
    pub(super) const fn new(standing: MutexGuard<'a, Standing>) -> Self {
        Self { standing, called: Called(Vec::new()) }
    }
}

impl Drop for Access<'_> {
    fn drop(&mut self) {
        self.called.0 = self.standing.watchers.called();
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        for (_, waker) in self.0.drain(..) {
            waker.wake();
        }
    }
}

impl Deref for Access<'_> {
    type Target = Standing;

    fn deref(&self) -> &Standing {
        &self.standing
    }
}

impl DerefMut for Access<'_> {
    fn deref_mut(&mut self) -> &mut Standing {
        &mut self.standing
    }
}
