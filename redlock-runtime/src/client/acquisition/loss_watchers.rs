//! Who wants to know when a lock is lost.

use super::present::News;
use std::task::Waker;

/// One waker for each watcher, which keeps its number.
#[derive(Debug, Default)]
pub(super) struct LossWatchers {
    wakers: Vec<(u32, Waker)>,
    next: u32,
    is_called: bool,
}

impl LossWatchers {
    /// Wakes `waker` from now on, in place of the one that this watcher had before.
    pub(super) fn watch(&mut self, number: &mut Option<u32>, waker: &Waker) {
        let number = *number.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        match self.wakers.iter_mut().find(|(other, _)| *other == number) {
            Some((_, old)) => old.clone_from(waker),
            None => self.wakers.push((number, waker.clone())),
        }
    }

    #[cfg(test)]
    pub(super) const fn count(&self) -> usize {
        self.wakers.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.wakers.is_empty()
    }

    /// The watcher with this number does not want to know any more.
    pub(super) fn forget(&mut self, number: u32) {
        self.wakers.retain(|(other, _)| *other != number);
    }

    /// All of them are to be woken, each once.
    pub(super) const fn call(&mut self) {
        self.is_called = true;
    }

    /// Whether anybody is to be woken.
    pub(super) const fn is_called(&self) -> bool {
        self.is_called
    }

    /// Those who are to be woken now.
    pub(super) fn called(&mut self) -> Calls {
        let wakers = if std::mem::take(&mut self.is_called) { std::mem::take(&mut self.wakers) } else { Vec::new() };
        Calls { wakers, news: None }
    }
}

/// Wakes those who were called when it is dropped, and tells what there is to tell: outside of every mutex, because whoever is
/// woken or told may run at once, in the same thread, and look at the lock.
#[derive(Debug, Default)]
#[must_use = "those who were called are woken when this is dropped"]
pub(crate) struct Calls {
    wakers: Vec<(u32, Waker)>,
    news: Option<Box<News>>,
}

impl Calls {
    /// The same, and `news` as well.
    pub(super) fn with(mut self, news: Option<Box<News>>) -> Self {
        self.news = news;
        self
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        while let Some((_, waker)) = self.wakers.pop() {
            waker.wake();
        }
    }
}

#[cfg(test)]
impl Calls {
    pub(crate) const fn len(&self) -> usize {
        self.wakers.len()
    }
}
