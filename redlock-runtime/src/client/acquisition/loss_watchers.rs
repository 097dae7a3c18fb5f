//! Who wants to know when a lock is lost.

use std::task::Waker;

/// One waker for each watcher, which keeps its number.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    wakers: Vec<(u64, Waker)>,
    next: u64,
    is_called: bool,
}

impl Watchers {
    /// Wakes `waker` from now on, in place of the one that this watcher had before.
    pub(crate) fn watch(&mut self, number: &mut Option<u64>, waker: &Waker) {
        let number = *number.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        match self.wakers.iter_mut().find(|(other, _)| *other == number) {
            Some((_, old)) => old.clone_from(waker),
            None => self.wakers.push((number, waker.clone())),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.wakers.is_empty()
    }

    pub(crate) fn forget(&mut self, number: u64) {
        self.wakers.retain(|(other, _)| *other != number);
    }

    /// All of them are to be woken, each once.
    pub(crate) const fn call(&mut self) {
        self.is_called = true;
    }

    /// Those who are to be woken now.
    pub(crate) fn called(&mut self) -> Vec<(u64, Waker)> {
        if std::mem::take(&mut self.is_called) { std::mem::take(&mut self.wakers) } else { Vec::new() }
    }
}
