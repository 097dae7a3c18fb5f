//! A call that waits for what another one of its process gets, as the others see it.

use crate::client::acquisition::Acquisition;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// What ends the wait.
#[derive(Debug)]
pub(super) enum Told {
    /// It has the lock by this token and in this turn, as the member with this number.
    Joined(Arc<Acquisition>, u32, u32),
    /// It goes on in the place of the call that it has waited for, in this turn, and others wait for it.
    Founds(Arc<Acquisition>, u32),
    /// There is nothing to wait for any more.
    Alone,
}

#[derive(Debug)]
pub(super) struct Reader(Mutex<State>);

#[derive(Debug)]
enum State {
    Waiting(Option<Waker>),
    Told(Told),
    /// The call is gone, or has taken what it was told.
    Gone,
}

/// What is left of a call that waits no longer.
pub(super) enum Left {
    /// It still waited.
    Waiting,
    Told(Told),
    Nothing,
}

impl Reader {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(State::Waiting(None)))
    }

    /// Ends the wait by what is `told`, which is made only if the call still waits.
    pub(super) fn tell(&self, told: impl FnOnce() -> Told) -> bool {
        let mut state = self.state();
        let State::Waiting(waker) = &mut *state else { return false };
        let waker = waker.take();
        *state = State::Told(told());
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    pub(super) fn goes_alone(&self) {
        self.tell(|| Told::Alone);
    }

    /// Ready when the call was told something.
    pub(super) fn poll_told(&self, cx: &Context<'_>) -> Poll<Told> {
        let mut state = self.state();
        match mem::replace(&mut *state, State::Gone) {
            State::Waiting(waker) => {
                let waker = waker.filter(|waker| waker.will_wake(cx.waker())).unwrap_or_else(|| cx.waker().clone());
                *state = State::Waiting(Some(waker));
                Poll::Pending
            }
            State::Told(told) => Poll::Ready(told),
            State::Gone => Poll::Ready(Told::Alone),
        }
    }

    /// The call is gone from now on.
    pub(super) fn leave(&self) -> Left {
        match mem::replace(&mut *self.state(), State::Gone) {
            State::Waiting(_) => Left::Waiting,
            State::Told(told) => Left::Told(told),
            State::Gone => Left::Nothing,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under this mutex leaves a call that waits, and its timer ends that.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
