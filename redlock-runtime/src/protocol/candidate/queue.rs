//! What stands in the order of a connection.

use std::collections::VecDeque;

/// A queue in the order of a connection. Without contention one thing at a time stands in it, and it needs no memory for
/// more.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    first: Option<T>,
    rest: VecDeque<T>,
}

impl<T> Queue<T> {
    pub(crate) const fn new() -> Self {
        Self { first: None, rest: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, item: T) {
        match self.first {
            None => self.first = Some(item),
            Some(_) => self.rest.push_back(item),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        std::mem::replace(&mut self.first, self.rest.pop_front())
    }

    pub(crate) const fn first(&self) -> Option<&T> {
        self.first.as_ref()
    }

    pub(crate) const fn first_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }

    pub(super) fn any(&self, is_wanted: impl Fn(&T) -> bool) -> bool {
        self.iter().any(is_wanted)
    }

    pub(super) fn for_each(&mut self, change: impl FnMut(&mut T)) {
        self.first.iter_mut().chain(&mut self.rest).for_each(change);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }
}
