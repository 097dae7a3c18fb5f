//! Shared state of a call that waits for its turn.

use crate::client::acquisition::Acquisition;
use crate::protocol::candidate::Wanted;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Debug)]
pub(super) struct LocalWaiter {
    pub(super) wanted: Wanted,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Waiting(Option<Waker>),
    /// The call has got the turn, with this token.
    Handed(Arc<Acquisition>),
    Closed,
    /// The call is gone, or has taken the turn.
    Gone,
}

/// Error: the manager was shut down.
#[derive(Debug)]
pub(crate) struct LineClosed;

/// State of a call that gives up its place.
pub(super) enum Cancelled {
    /// The call still waited.
    Waiting,
    /// The call had got the turn, with this token.
    Handed(Arc<Acquisition>),
    Nothing,
}

impl LocalWaiter {
    pub(super) const fn new(wanted: Wanted) -> Self {
        Self { wanted, state: Mutex::new(State::Waiting(None)) }
    }

    /// Hands the turn to the call. Returns `false` if the call is gone, and nothing has changed.
    pub(super) fn hand(&self, acquisition: &Arc<Acquisition>) -> bool {
        self.tell(|| State::Handed(Arc::clone(acquisition)))
    }

    /// Ends the wait because the manager was shut down.
    pub(super) fn close(&self) {
        self.tell(|| State::Closed);
    }

    /// Ends the wait with the state `news`, and wakes the call. Returns `false` if the call does not wait any longer.
    fn tell(&self, news: impl FnOnce() -> State) -> bool {
        let mut state = self.state();
        let State::Waiting(waker) = &mut *state else { return false };
        let waker = waker.take();
        *state = news();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Polls for the turn.
    pub(super) fn poll_handed(&self, cx: &Context<'_>) -> Poll<Result<Arc<Acquisition>, LineClosed>> {
        let mut state = self.state();
        match mem::replace(&mut *state, State::Gone) {
            State::Waiting(waker) => {
                let waker = waker.filter(|waker| waker.will_wake(cx.waker())).unwrap_or_else(|| cx.waker().clone());
                *state = State::Waiting(Some(waker));
                Poll::Pending
            }
            State::Handed(acquisition) => Poll::Ready(Ok(acquisition)),
            State::Closed | State::Gone => Poll::Ready(Err(LineClosed)),
        }
    }

    /// Ends the wait from the side of the call.
    pub(super) fn leave(&self) -> Cancelled {
        match mem::replace(&mut *self.state(), State::Gone) {
            State::Waiting(_) => Cancelled::Waiting,
            State::Handed(acquisition) => Cancelled::Handed(acquisition),
            State::Closed | State::Gone => Cancelled::Nothing,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Code under this mutex cannot panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
