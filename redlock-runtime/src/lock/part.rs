//! One name of a request, with its class.

use crate::lock::class::Class;
use crate::lock::{LockKey, Mode};

/// One name of a request, with its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) key: LockKey,
    pub(crate) class: Class,
    /// Class before a downgrade.
    before: Class,
}

impl Part {
    pub(crate) const fn new(key: LockKey, class: Class) -> Self {
        Self { key, class, before: class }
    }

    /// Returns the key if it is locked exclusively, with everything below it.
    pub(crate) fn alone(&self) -> Option<&LockKey> {
        (self.class == Class::Exclusive).then_some(&self.key)
    }

    /// Part for a key that is requested itself.
    pub(crate) const fn of(key: LockKey, mode: Mode) -> Self {
        Self::new(key, Class::of(mode))
    }

    /// Returns the part after a downgrade.
    pub(crate) fn lowered(&self) -> Self {
        Self { key: self.key.clone(), class: self.class.lowered(), before: self.before }
    }

    /// Raises the class to the stronger one of the two.
    pub(crate) fn strengthen(&mut self, class: Class) {
        self.class = self.class.stronger(class);
        self.before = self.class;
    }

    /// Returns `true` if the part needs a fencing number: it is exclusive or an exclusive intent, or was so before a downgrade.
    pub(crate) fn is_numbered(&self) -> bool {
        self.before.is_alone()
    }

    /// Returns the name in Redis.
    pub(crate) fn name(&self) -> &str {
        self.key.name()
    }

    /// Moves the part below `namespace`, which is empty or ends in its separator.
    pub(crate) fn below(self, namespace: &str) -> Self {
        Self { key: self.key.below(namespace), ..self }
    }

    /// Returns `true` if a holder of this part needs no further lock for the other part. Both have one name, or the other one is
    /// below this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.class.covers(other.class) && (self.name() == other.name() || self.is_above(other))
    }

    /// Returns `true` if the other part is a place below this place in a tree. An intent covers nothing that is below.
    fn is_above(&self, other: &Self) -> bool {
        let is_place = self.key.is_place() && other.key.is_place() && !self.class.is_intent();
        is_place && other.name().strip_prefix(self.name()).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns `true` if two requests with these parts exclude each other.
    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        self.class.conflicts_with(other.class) && self.name() == other.name()
    }
}
