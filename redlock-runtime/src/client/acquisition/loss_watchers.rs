//! Watchers that are woken when a lock, or one share of it, is lost.
//!
//! A token that several calls share is watched for each of them: by its body, by other tasks that wait for its loss,
//! and by the nested calls in it. An event of the token concerns all watchers. A member that leaves its share concerns
//! only the watchers of that member.

use super::present::News;
use std::any::Any;
use std::mem;
use std::task::Waker;

/// Member number of a token that is not shared; numbers of members begin with 1.
pub(crate) const NO_MEMBER: u32 = 0;

/// Wakers of the watchers. Each watcher keeps its number.
#[derive(Debug, Default)]
pub(super) struct LossWatchers {
    /// Sorted by number, because a process may have many readers, and each searches for its own under the mutex of the
    /// state.
    all: Vec<Watcher>,
    next: u32,
    called: Called,
}

#[derive(Debug)]
struct Watcher {
    number: u32,
    /// Member that is watched.
    member: u32,
    waker: Waker,
}

/// Watchers to wake after the mutex of the state is free: none, all, or those of the member with this number. It is one
/// number because every held lock has this field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Called(u32);

impl Called {
    const NOBODY: Self = Self(u32::MAX);
    const ALL: Self = Self(u32::MAX - 1);

    /// Returns at least the watchers of that `member`.
    const fn of(member: u32) -> Self {
        if member < Self::ALL.0 { Self(member) } else { Self::ALL }
    }
}

impl Default for Called {
    fn default() -> Self {
        Self::NOBODY
    }
}

impl LossWatchers {
    /// Registers `waker`. It replaces the earlier waker of this watcher for that `member`.
    pub(super) fn watch(&mut self, number: &mut Option<u32>, member: u32, waker: &Waker) {
        let number = *number.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        match self.place(number) {
            Ok(place) => self.all.get_mut(place).into_iter().for_each(|watcher| watcher.waker.clone_from(waker)),
            // A watcher that was woken before returns with a number that is smaller than others.
            Err(place) => self.all.insert(place, Watcher { number, member, waker: waker.clone() }),
        }
    }

    /// Returns the index of the watcher with this number, or its insertion point.
    fn place(&self, number: u32) -> Result<usize, usize> {
        self.all.binary_search_by_key(&number, |watcher| watcher.number)
    }

    #[cfg(test)]
    pub(super) const fn count(&self) -> usize {
        self.all.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Removes the watcher with this number.
    pub(super) fn forget(&mut self, number: u32) {
        if let Ok(place) = self.place(number) {
            self.all.remove(place);
        }
    }

    /// Marks all watchers as called, each once.
    pub(super) const fn call(&mut self) {
        self.called = Called::ALL;
    }

    /// Marks the watchers of that `member` as called, each once.
    pub(super) fn mark_called_for_member(&mut self, member: u32) {
        let those = Called::of(member);
        self.called = if [Called::NOBODY, those].contains(&self.called) { those } else { Called::ALL };
    }

    /// Returns `true` if any watcher must be woken.
    pub(super) fn is_called(&self) -> bool {
        self.called != Called::NOBODY
    }

    /// Removes and returns the called watchers.
    pub(super) fn called(&mut self) -> Calls {
        let watchers = match mem::take(&mut self.called) {
            Called::NOBODY => Vec::new(),
            Called::ALL => mem::take(&mut self.all),
            Called(member) => self.all.extract_if(.., |watcher| watcher.member == member).collect(),
        };
        Calls { watchers, news: None, companion: None }
    }
}

/// Data that passes with a token from call to call, and whose type the token does not know.
pub(super) type Companion = Box<dyn Any + Send>;

/// Called watchers and events. On drop, it wakes the watchers and logs the events. That must happen outside of every
/// mutex: a woken task or a subscriber may run at once, in the same thread, and examine the lock.
#[derive(Debug, Default)]
#[must_use = "those who were called are woken when this is dropped"]
pub(crate) struct Calls {
    watchers: Vec<Watcher>,
    news: Option<Box<News>>,
    companion: Option<Companion>,
}

impl Calls {
    /// Adds the companion that ends with the token.
    pub(super) fn ending(mut self, companion: Option<Companion>) -> Self {
        self.companion = companion;
        self
    }

    /// Adds `news`.
    pub(super) fn with(mut self, news: Option<Box<News>>) -> Self {
        self.news = news;
        self
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        while let Some(watcher) = self.watchers.pop() {
            watcher.waker.wake();
        }
    }
}

#[cfg(test)]
impl Calls {
    pub(crate) const fn len(&self) -> usize {
        self.watchers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_watcher_is_found_by_its_number_after_it_was_woken() {
        let (mut watchers, mut numbers) = (LossWatchers::default(), [None; 3]);
        for number in &mut numbers {
            watchers.watch(number, NO_MEMBER, Waker::noop());
        }
        watchers.call();
        assert_eq!(watchers.called().len(), 3);
        for _ in 0..2 {
            for number in numbers.iter_mut().rev() {
                watchers.watch(number, NO_MEMBER, Waker::noop());
            }
            assert_eq!(watchers.count(), 3);
        }
        for (left, number) in numbers.into_iter().enumerate().rev() {
            watchers.forget(number.unwrap());
            assert_eq!(watchers.count(), left);
        }
    }

    #[test]
    fn only_loss_watchers_of_the_given_member_are_woken() {
        let (mut watchers, mut numbers) = (LossWatchers::default(), [None; 5]);
        for (number, member) in numbers.iter_mut().zip([1, 2, 1, NO_MEMBER, 2]) {
            watchers.watch(number, member, Waker::noop());
        }
        watchers.mark_called_for_member(1);
        watchers.mark_called_for_member(1);
        assert!(watchers.is_called());
        assert_eq!((watchers.called().len(), watchers.count()), (2, 3));
        assert!(!watchers.is_called());
        assert_eq!(watchers.called().len(), 0);
        watchers.mark_called_for_member(NO_MEMBER);
        assert_eq!((watchers.called().len(), watchers.count()), (1, 2));
        // Calls for two members at once wake all: that is rare, and no watcher is forgotten.
        watchers.watch(&mut numbers[0], 1, Waker::noop());
        watchers.watch(&mut numbers[3], NO_MEMBER, Waker::noop());
        watchers.mark_called_for_member(1);
        watchers.mark_called_for_member(2);
        assert_eq!(watchers.called().len(), 4);
        watchers.watch(&mut numbers[0], 1, Waker::noop());
        watchers.call();
        watchers.mark_called_for_member(2);
        assert_eq!(watchers.called().len(), 1, "who calls all means all");
        // Numbers start again after four billion members.
        watchers.watch(&mut numbers[0], u32::MAX, Waker::noop());
        watchers.mark_called_for_member(u32::MAX);
        assert_eq!(watchers.called().len(), 1);
    }
}
