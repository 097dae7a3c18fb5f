//! A call that waits for what another one of its process gets, to share it.

use super::LocalQueue;
use super::local_turn::LocalTurn;
use super::member::Member;
use crate::lock::LockKey;
use crate::time::clock::Instant;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// What becomes of the wait.
#[derive(Debug)]
pub(crate) enum News {
    /// It has the lock together with others.
    Joined(Member),
    /// It goes on in the place of the call that it has waited for, and others wait for it.
    Founds(LocalTurn),
    /// There is nothing to wait for any more: it asks the nodes by a token of its own.
    Alone,
}

/// The same call, as the others see it.
#[derive(Debug)]
pub(super) struct Reader(Mutex<State>);

#[derive(Debug)]
enum State {
    Waiting(Option<Waker>),
    Told(News),
    Gone,
}

impl Reader {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(State::Waiting(None)))
    }

    /// Ends the wait with some `news`, which are made only if the call still waits.
    pub(super) fn tell(&self, news: impl FnOnce() -> News) -> bool {
        let mut state = self.state();
        let State::Waiting(waker) = &mut *state else { return false };
        let waker = waker.take();
        *state = State::Told(news());
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    pub(super) fn goes_alone(&self) {
        self.tell(|| News::Alone);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under this mutex leaves a call that waits, and its timer ends that.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wait of the call. Dropped, it leaves, and what it was told meanwhile goes to others.
#[derive(Debug)]
#[must_use = "the wait is left when this is dropped"]
pub(crate) struct ReaderWait {
    local: Arc<LocalQueue>,
    key: LockKey,
    reader: Arc<Reader>,
}

impl ReaderWait {
    pub(super) fn new(local: &Arc<LocalQueue>, key: &LockKey, reader: Arc<Reader>) -> Self {
        Self { local: Arc::clone(local), key: key.clone(), reader }
    }

    /// The call does not wait any more, unless there is news by `now`. Nobody else does when whoever they wait for has taken too
    /// long.
    pub(crate) fn end(self, now: Instant) -> News {
        for reader in self.local.end_gathering(&self.key, &self.reader, now) {
            reader.goes_alone();
        }
        let before = mem::replace(&mut *self.reader.state(), State::Gone);
        match before {
            State::Told(news) => news,
            State::Waiting(_) | State::Gone => News::Alone,
        }
    }
}

impl Future for ReaderWait {
    type Output = News;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<News> {
        let mut state = self.reader.state();
        match mem::replace(&mut *state, State::Gone) {
            State::Waiting(waker) => {
                let waker = waker.filter(|waker| waker.will_wake(cx.waker())).unwrap_or_else(|| cx.waker().clone());
                *state = State::Waiting(Some(waker));
                Poll::Pending
            }
            State::Told(news) => Poll::Ready(news),
            State::Gone => Poll::Ready(News::Alone),
        }
    }
}

impl Drop for ReaderWait {
    fn drop(&mut self) {
        let before = mem::replace(&mut *self.reader.state(), State::Gone);
        match before {
            State::Waiting(_) => self.local.forget_reader(&self.key, &self.reader),
            // A share is given back, and a place goes to the next.
            State::Told(news) => drop(news),
            State::Gone => {}
        }
    }
}
