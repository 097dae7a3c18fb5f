//! A place in the line of one key.

use super::Seat;
use crate::client::acquisition::Ownership;
use crate::client::shared::Core;
use crate::lock::LockKey;
use crate::protocol::command::Subject;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A call that waits for the seat, as the others see it.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) ttl: Duration,
    pub(super) is_fenced: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Waiting(Option<Waker>),
    Handed(Seat),
    Closed,
    /// The call is gone.
    Gone,
}

impl Waiter {
    pub(super) fn new(ttl: Duration, is_fenced: bool) -> Self {
        Self { ttl, is_fenced, state: Mutex::new(State::Waiting(None)) }
    }

    /// # Errors
    /// The seat, when the call is gone.
    pub(super) fn hand(&self, seat: Seat) -> Result<(), Seat> {
        let mut state = self.state();
        match &mut *state {
            State::Waiting(waker) => {
                let waker = waker.take();
                *state = State::Handed(seat);
                drop(state);
                wake(waker);
                Ok(())
            }
            State::Handed(_) | State::Closed | State::Gone => Err(seat),
        }
    }

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
#[must_use = "the place is left when the ticket is dropped"]
pub(crate) struct Ticket {
    core: Arc<Core>,
    key: LockKey,
    place: u64,
    waiter: Arc<Waiter>,
}

/// The manager was shut down.
#[derive(Debug)]
pub(crate) struct Ended;

impl Ticket {
    pub(super) fn new(core: &Arc<Core>, key: &LockKey, place: u64, waiter: Arc<Waiter>) -> Self {
        Self { core: Arc::clone(core), key: key.clone(), place, waiter }
    }
}

impl Ticket {
    /// Takes the seat from a holder whose lease has run out, if this is the first place in line.
    pub(crate) fn take_over(&self) -> Option<Seat> {
        let mut shard = self.core.local.shard(self.key.name());
        let entry = shard.entries.get_mut(self.key.name())?;
        let is_first = entry.waiters.first_key_value().is_some_and(|(place, _)| *place == self.place);
        if !is_first || !entry.ownership.is_over() {
            return None;
        }
        entry.waiters.pop_first();
        let ownership = Ownership::new(
            &self.core,
            Subject::new(self.key.clone(), self.core.new_token()),
            self.waiter.ttl,
            self.core.clock.now(),
        );
        Some(entry.take_over(Arc::new(ownership)))
    }
}

impl Future for Ticket {
    type Output = Result<Seat, Ended>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.waiter.state();
        match mem::replace(&mut *state, State::Gone) {
            State::Waiting(waker) => {
                let waker = waker.filter(|waker| waker.will_wake(cx.waker())).unwrap_or_else(|| cx.waker().clone());
                *state = State::Waiting(Some(waker));
                Poll::Pending
            }
            State::Handed(seat) => Poll::Ready(Ok(seat)),
            State::Closed | State::Gone => Poll::Ready(Err(Ended)),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let state = mem::replace(&mut *self.waiter.state(), State::Gone);
        if let State::Waiting(_) = state
            && let Some(entry) = self.core.local.shard(self.key.name()).entries.get_mut(self.key.name())
        {
            entry.waiters.remove(&self.place);
        }
        // A seat that nobody took goes to the next in line here.
    }
}
