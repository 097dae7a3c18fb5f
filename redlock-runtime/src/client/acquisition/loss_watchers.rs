//! Who wants to know when a lock is lost.

use super::present::News;
use std::task::Waker;

/// One waker for each watcher, which keeps its number.
#[derive(Debug, Default)]
pub(super) struct LossWatchers {
    /// By their numbers, the smallest first: readers of a process are many, and each looks for its own under the mutex of the state.
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
        match self.place(number) {
            Ok(place) => self.wakers.get_mut(place).into_iter().for_each(|(_, old)| old.clone_from(waker)),
            // Who was called before comes back with a number that is smaller than others.
            Err(place) => self.wakers.insert(place, (number, waker.clone())),
        }
    }

    /// Where the watcher with this number is, or would be.
    fn place(&self, number: u32) -> Result<usize, usize> {
        self.wakers.binary_search_by_key(&number, |(other, _)| *other)
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
        if let Ok(place) = self.place(number) {
            self.wakers.remove(place);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_called_is_found_again_by_its_number() {
        let (mut watchers, mut numbers) = (LossWatchers::default(), [None; 3]);
        for number in &mut numbers {
            watchers.watch(number, Waker::noop());
        }
        watchers.call();
        assert_eq!(watchers.called().len(), 3);
        for _ in 0..2 {
            for number in numbers.iter_mut().rev() {
                watchers.watch(number, Waker::noop());
            }
            assert_eq!(watchers.count(), 3);
        }
        for (left, number) in numbers.into_iter().enumerate().rev() {
            watchers.forget(number.unwrap());
            assert_eq!(watchers.count(), left);
        }
    }
}
