//! Who wants to know when a lock is lost, or one part of it.
//!
//! A token that several calls have is watched for each of them: by its body, by whoever else waits for its loss, and by the nested
//! calls in it. What befalls the token concerns all, and a member that gives its part back only those who watch for that one.

use super::present::News;
use std::any::Any;
use std::mem;
use std::task::Waker;

/// Stands for whoever has a token alone, where others have the numbers of their parts: those begin with 1.
pub(crate) const NO_MEMBER: u32 = 0;

/// One waker for each watcher, which keeps its number.
#[derive(Debug, Default)]
pub(super) struct LossWatchers {
    /// By their numbers, the smallest first: readers of a process are many, and each looks for its own under the mutex of the state.
    all: Vec<Watcher>,
    next: u32,
    called: Called,
}

#[derive(Debug)]
struct Watcher {
    number: u32,
    /// For which member it watches.
    member: u32,
    waker: Waker,
}

/// Who is to be woken when the mutex of the state is free again: nobody, all, or those who watch for the member with that number. It
/// is one number because every lock that is held has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Called(u32);

impl Called {
    const NOBODY: Self = Self(u32::MAX);
    const ALL: Self = Self(u32::MAX - 1);

    /// Those of that `member`, or more.
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
    /// Wakes `waker` from now on, in place of the one that this watcher for that `member` had before.
    pub(super) fn watch(&mut self, number: &mut Option<u32>, member: u32, waker: &Waker) {
        let number = *number.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        match self.place(number) {
            Ok(place) => self.all.get_mut(place).into_iter().for_each(|watcher| watcher.waker.clone_from(waker)),
            // Who was called before comes back with a number that is smaller than others.
            Err(place) => self.all.insert(place, Watcher { number, member, waker: waker.clone() }),
        }
    }

    /// Where the watcher with this number is, or would be.
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

    /// The watcher with this number does not want to know any more.
    pub(super) fn forget(&mut self, number: u32) {
        if let Ok(place) = self.place(number) {
            self.all.remove(place);
        }
    }

    /// All of them are to be woken, each once.
    pub(super) const fn call(&mut self) {
        self.called = Called::ALL;
    }

    /// Those who watch for that `member` are to be woken, each once.
    pub(super) fn call_those_of(&mut self, member: u32) {
        let those = Called::of(member);
        self.called = if [Called::NOBODY, those].contains(&self.called) { those } else { Called::ALL };
    }

    /// Whether anybody is to be woken.
    pub(super) fn is_called(&self) -> bool {
        self.called != Called::NOBODY
    }

    /// Those who are to be woken now.
    pub(super) fn called(&mut self) -> Calls {
        let watchers = match mem::take(&mut self.called) {
            Called::NOBODY => Vec::new(),
            Called::ALL => mem::take(&mut self.all),
            Called(member) => self.all.extract_if(.., |watcher| watcher.member == member).collect(),
        };
        Calls { watchers, news: None, companion: None }
    }
}

/// What the calls know that have a token one after the other, and the token does not.
pub(super) type Companion = Box<dyn Any + Send>;

/// Wakes those who were called when it is dropped, and tells what there is to tell: outside of every mutex, because whoever is
/// woken or told may run at once, in the same thread, and look at the lock.
#[derive(Debug, Default)]
#[must_use = "those who were called are woken when this is dropped"]
pub(crate) struct Calls {
    watchers: Vec<Watcher>,
    news: Option<Box<News>>,
    companion: Option<Companion>,
}

impl Calls {
    /// The same, and what ends with the token.
    pub(super) fn ending(mut self, companion: Option<Companion>) -> Self {
        self.companion = companion;
        self
    }

    /// The same, and `news` as well.
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
    fn whoever_was_called_is_found_again_by_its_number() {
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
    fn those_of_one_member_are_called_and_no_others() {
        let (mut watchers, mut numbers) = (LossWatchers::default(), [None; 5]);
        for (number, member) in numbers.iter_mut().zip([1, 2, 1, NO_MEMBER, 2]) {
            watchers.watch(number, member, Waker::noop());
        }
        watchers.call_those_of(1);
        watchers.call_those_of(1);
        assert!(watchers.is_called());
        assert_eq!((watchers.called().len(), watchers.count()), (2, 3));
        assert!(!watchers.is_called());
        assert_eq!(watchers.called().len(), 0);
        watchers.call_those_of(NO_MEMBER);
        assert_eq!((watchers.called().len(), watchers.count()), (1, 2));
        // Of two at once, all: that is rare, and nobody is forgotten.
        watchers.watch(&mut numbers[0], 1, Waker::noop());
        watchers.watch(&mut numbers[3], NO_MEMBER, Waker::noop());
        watchers.call_those_of(1);
        watchers.call_those_of(2);
        assert_eq!(watchers.called().len(), 4);
        watchers.watch(&mut numbers[0], 1, Waker::noop());
        watchers.call();
        watchers.call_those_of(2);
        assert_eq!(watchers.called().len(), 1, "who calls all means all");
        // Numbers begin again after four billion members.
        watchers.watch(&mut numbers[0], u32::MAX, Waker::noop());
        watchers.call_those_of(u32::MAX);
        assert_eq!(watchers.called().len(), 1);
    }
}
