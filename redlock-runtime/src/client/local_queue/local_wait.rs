//! A place in the line of one key: as the call that waits sees it, and as the others do.

use super::{LocalQueue, LocalTurn};
use crate::client::acquisition::Acquisition;
use crate::lock::LockKey;
use crate::protocol::candidate::Wanted;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A call that waits for its turn, as the others see it.
#[derive(Debug)]
pub(super) struct LocalWaiter {
    pub(super) wanted: Wanted,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Waiting(Option<Waker>),
    Handed(LocalTurn),
    Closed,
    /// The call is gone.
    Gone,
}

impl LocalWaiter {
    pub(super) const fn new(wanted: Wanted) -> Self {
        Self { wanted, state: Mutex::new(State::Waiting(None)) }
    }

    /// # Errors
    /// The turn, when the call is gone.
    pub(super) fn hand(&self, turn: LocalTurn) -> Result<(), LocalTurn> {
        let mut state = self.state();
        match &mut *state {
            State::Waiting(waker) => {
                let waker = waker.take();
                *state = State::Handed(turn);
                drop(state);
                wake(waker);
                Ok(())
            }
            State::Handed(_) | State::Closed | State::Gone => Err(turn),
        }
    }

    /// The manager was shut down.
    pub(super) fn close(&self) {
        let mut state = self.state();
        if let State::Waiting(waker) = &mut *state {
            let waker = waker.take();
            *state = State::Closed;
            drop(state);
            wake(waker);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this mutex.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The place of a call. Dropped, it leaves the line, and what was handed to it meanwhile goes to the next.
#[derive(Debug)]
#[must_use = "the place is left when this is dropped"]
pub(crate) struct LocalWait {
    local: Arc<LocalQueue>,
    key: LockKey,
    place: u64,
    waiter: Arc<LocalWaiter>,
}

/// The manager was shut down.
#[derive(Debug)]
pub(crate) struct LineClosed;

impl LocalWait {
    pub(super) fn new(local: &Arc<LocalQueue>, key: &LockKey, place: u64, waiter: Arc<LocalWaiter>) -> Self {
        Self { local: Arc::clone(local), key: key.clone(), place, waiter }
    }

    /// Takes the turn from a holder whose lease has run out, if this is the first place in line.
    pub(crate) fn supersede(&self) -> Option<LocalTurn> {
        let mut shard = self.local.shard(self.key.name());
        let entry = shard.entries.get_mut(self.key.name())?;
        if !entry.leave_to_supersede(self.place) {
            return None;
        }
        let acquisition = Arc::new(Acquisition::of_key(&self.local.shared, &self.key, self.waiter.wanted.ttl));
        let calls = entry.supersede(&acquisition);
        drop(shard);
        drop(calls);
        Some(LocalTurn::new(&self.local, acquisition))
    }
}

impl Future for LocalWait {
    type Output = Result<LocalTurn, LineClosed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.waiter.state();
        match mem::replace(&mut *state, State::Gone) {
            State::Waiting(waker) => {
                let waker = waker.filter(|waker| waker.will_wake(cx.waker())).unwrap_or_else(|| cx.waker().clone());
                *state = State::Waiting(Some(waker));
                Poll::Pending
            }
            State::Handed(turn) => Poll::Ready(Ok(turn)),
            State::Closed | State::Gone => Poll::Ready(Err(LineClosed)),
        }
    }
}

impl Drop for LocalWait {
    fn drop(&mut self) {
        let state = mem::replace(&mut *self.waiter.state(), State::Gone);
        if let State::Waiting(_) = state
            && let Some(entry) = self.local.shard(self.key.name()).entries.get_mut(self.key.name())
        {
            entry.leave(self.place);
        }
        // A turn that nobody took goes to the next in line here.
    }
}
