//! Wait of a call for the result of another call of its process, to share its lock.

use super::LocalQueue;
use super::local_owner::LocalOwner;
use super::member::Member;
use super::reader::{Cancelled, Handoff, Reader};
use crate::lock::LockKey;
use crate::time::clock::Instant;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Outcome of the wait.
#[derive(Debug)]
pub(crate) enum News {
    /// The call shares the lock with others.
    Joined(Member),
    /// The call takes the place of the call that it has waited for, and others wait for it.
    Founds(LocalOwner),
    /// There is nothing left to wait for: the call asks the nodes with its own token.
    Alone,
}

/// Wait of a call. On drop, it ends, and a result that arrived meanwhile goes to other calls.
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

    /// Ends the wait at `now`, with the result if it has arrived. If the awaited call has taken too long, all other
    /// waits for it end as well.
    pub(crate) fn end(self, now: Instant) -> News {
        for reader in self.local.end_gathering(&self.key, &self.reader, now) {
            reader.notify_alone();
        }
        match self.reader.leave() {
            Cancelled::Handoff(told) => self.news(told),
            Cancelled::Waiting | Cancelled::Nothing => News::Alone,
        }
    }

    /// Converts the result `told` to the outcome.
    fn news(&self, told: Handoff) -> News {
        match told {
            Handoff::Joined(acquisition, turn, number) => {
                News::Joined(Member::new(&self.local, &acquisition, turn, number))
            }
            Handoff::Founds(acquisition, turn) => News::Founds(LocalOwner::founding(&self.local, acquisition, turn)),
            Handoff::Alone => News::Alone,
        }
    }
}

impl Future for ReaderWait {
    type Output = News;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<News> {
        self.reader.poll_handoff(cx).map(|told| self.news(told))
    }
}

impl Drop for ReaderWait {
    fn drop(&mut self) {
        match self.reader.leave() {
            Cancelled::Waiting => self.local.forget_reader(&self.key, &self.reader),
            // A share is released, and a place goes to the next call.
            Cancelled::Handoff(told) => drop(self.news(told)),
            Cancelled::Nothing => {}
        }
    }
}
