//! A call that waits for what another one of its process gets, to share it.

use super::LocalQueue;
use super::local_turn::LocalTurn;
use super::member::Member;
use super::reader::{Left, Reader, Told};
use crate::lock::LockKey;
use crate::time::clock::Instant;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

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
        match self.reader.leave() {
            Left::Told(told) => self.news(told),
            Left::Waiting | Left::Nothing => News::Alone,
        }
    }

    /// What the call has by what it was `told`.
    fn news(&self, told: Told) -> News {
        match told {
            Told::Joined(acquisition, turn, number) => {
                News::Joined(Member::new(&self.local, &acquisition, turn, number))
            }
            Told::Founds(acquisition, turn) => News::Founds(LocalTurn::founding(&self.local, acquisition, turn)),
            Told::Alone => News::Alone,
        }
    }
}

impl Future for ReaderWait {
    type Output = News;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<News> {
        self.reader.poll_told(cx).map(|told| self.news(told))
    }
}

impl Drop for ReaderWait {
    fn drop(&mut self) {
        match self.reader.leave() {
            Left::Waiting => self.local.forget_reader(&self.key, &self.reader),
            // A share is given back, and a place goes to the next.
            Left::Told(told) => drop(self.news(told)),
            Left::Nothing => {}
        }
    }
}
