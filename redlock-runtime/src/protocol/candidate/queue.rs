//! Compact queue for commands in the order of a connection.

use std::iter::successors;

/// Linked queue in the order of a connection. Each held lock has two queues for each node, and they are nearly always
/// empty. An empty queue takes one pointer. A queue that is not empty is short, so finding its end is cheap.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T>(Option<Box<Place<T>>>);

#[derive(Clone, Debug)]
struct Place<T> {
    item: T,
    next: Queue<T>,
}

impl<T> Queue<T> {
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    pub(crate) fn push(&mut self, item: T) {
        match &mut self.0 {
            Some(place) => place.next.push(item),
            None => self.0 = Some(Box::new(Place { item, next: Self::new() })),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let Place { item, next } = *self.0.take()?;
        *self = next;
        Some(item)
    }

    pub(crate) fn first(&self) -> Option<&T> {
        self.0.as_ref().map(|place| &place.item)
    }

    pub(crate) fn first_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut().map(|place| &mut place.item)
    }

    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        successors(self.0.as_deref(), |place| place.next.0.as_deref()).map(|place| &place.item)
    }

    pub(super) fn any(&self, is_wanted: impl Fn(&T) -> bool) -> bool {
        self.iter().any(is_wanted)
    }

    pub(super) fn for_each(&mut self, mut change: impl FnMut(&mut T)) {
        let mut rest = self;
        while let Some(place) = &mut rest.0 {
            change(&mut place.item);
            rest = &mut place.next;
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidate_queue_is_first_in_first_out() {
        let mut queue = Queue::new();
        (0..3).for_each(|item| queue.push(item));
        assert_eq!((queue.pop(), queue.first(), queue.len()), (Some(0), Some(&1), 2));
        queue.push(3);
        queue.for_each(|item| *item *= 2);
        assert_eq!(queue.iter().copied().collect::<Vec<_>>(), [2, 4, 6]);
        assert_eq!([(); 4].map(|()| queue.pop()), [Some(2), Some(4), Some(6), None]);
        assert_eq!(queue.len(), 0);
    }
}
