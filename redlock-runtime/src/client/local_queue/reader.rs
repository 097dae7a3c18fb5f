//! Shared state of a call that waits for the result of another call of its process.

use crate::client::acquisition::Acquisition;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Result that ends the wait.
#[derive(Debug)]
pub(super) enum Handoff {
    /// The call has the lock with this token and turn, as the member with this number.
    Joined(Arc<Acquisition>, u32, u32),
    /// The call takes the place of the call that it has waited for, with this turn, and others wait for it.
    Founds(Arc<Acquisition>, u32),
    /// There is nothing left to wait for.
    Alone,
}

#[derive(Debug)]
pub(super) struct Reader(Mutex<State>);

#[derive(Debug)]
enum State {
    Waiting(Option<Waker>),
    Handoff(Handoff),
    /// The call is gone, or has taken the result.
    Gone,
}

/// State of a call that stops waiting.
pub(super) enum Cancelled {
    /// The call still waited.
    Waiting,
    Handoff(Handoff),
    Nothing,
}

impl Reader {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(State::Waiting(None)))
    }

    /// Ends the wait with the result of `told`, which is called only if the call still waits.
    pub(super) fn tell(&self, told: impl FnOnce() -> Handoff) -> bool {
        let mut state = self.state();
        let State::Waiting(waker) = &mut *state else { return false };
        let waker = waker.take();
        *state = State::Handoff(told());
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    pub(super) fn notify_alone(&self) {
        self.tell(|| Handoff::Alone);
    }

    /// Polls for the result.
    pub(super) fn poll_handoff(&self, cx: &Context<'_>) -> Poll<Handoff> {
        let mut state = self.state();
        match mem::replace(&mut *state, State::Gone) {
            State::Waiting(waker) => {
                let waker = waker.filter(|waker| waker.will_wake(cx.waker())).unwrap_or_else(|| cx.waker().clone());
                *state = State::Waiting(Some(waker));
                Poll::Pending
            }
            State::Handoff(told) => Poll::Ready(told),
            State::Gone => Poll::Ready(Handoff::Alone),
        }
    }

    /// Ends the wait from the side of the call.
    pub(super) fn leave(&self) -> Cancelled {
        match mem::replace(&mut *self.state(), State::Gone) {
            State::Waiting(_) => Cancelled::Waiting,
            State::Handoff(told) => Cancelled::Handoff(told),
            State::Gone => Cancelled::Nothing,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under this mutex leaves a waiting call, whose timer ends the wait.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
