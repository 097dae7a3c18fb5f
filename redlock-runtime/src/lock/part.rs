//! One name of a request, and as what it is wanted.

use crate::lock::class::Class;
use crate::lock::{LockKey, Mode};

/// One name of a request, and as what it is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) key: LockKey,
    pub(crate) class: Class,
    /// The same before it was lowered.
    before: Class,
}

impl Part {
    pub(crate) const fn new(key: LockKey, class: Class) -> Self {
        Self { key, class, before: class }
    }

    /// The key, if nobody else may have it or anything of it at the same time.
    pub(crate) fn alone(&self) -> Option<&LockKey> {
        (self.class == Class::Exclusive).then_some(&self.key)
    }

    /// A key that is wanted by itself.
    pub(crate) const fn of(key: LockKey, mode: Mode) -> Self {
        Self::new(key, Class::of(mode))
    }

    /// The same together with others, which it had alone.
    pub(crate) fn lowered(&self) -> Self {
        Self { key: self.key.clone(), class: self.class.lowered(), before: self.before }
    }

    /// The same as the stronger one of two classes.
    pub(crate) fn strengthen(&mut self, class: Class) {
        self.class = self.class.stronger(class);
        self.before = self.class;
    }

    /// Whether it is numbered: it is wanted alone, or something below, or was so before it was lowered.
    pub(crate) fn is_numbered(&self) -> bool {
        self.before.is_alone()
    }

    /// The name in Redis.
    pub(crate) fn name(&self) -> &str {
        self.key.name()
    }

    /// The same below `namespace`, which is empty or ends in its separator.
    pub(crate) fn below(self, namespace: &str) -> Self {
        Self { key: self.key.below(namespace), ..self }
    }

    /// Whether whoever has this part needs no other lock for that one: it is the same name, or a place below this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.class.covers(other.class) && (self.name() == other.name() || self.is_above(other))
    }

    /// Whether both are places in a tree, and the other one is below this one. An intent is for nothing that is below.
    fn is_above(&self, other: &Self) -> bool {
        let is_place = self.key.is_place() && other.key.is_place() && !self.class.is_intent();
        is_place && other.name().strip_prefix(self.name()).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether two requests, one with either part, exclude each other.
    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        self.class.conflicts_with(other.class) && self.name() == other.name()
    }
}
