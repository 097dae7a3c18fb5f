//! Which locks there are.

use crate::error::NodeFailure;
use crate::lock::LockKey;
use std::collections::BTreeSet;

/// The names of the locks at one node.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) found: BTreeSet<Box<str>>,
    /// Whether these are all at those that have answered.
    pub(crate) are_all: bool,
    /// The members of a cluster that could not be asked.
    pub(crate) missing: Vec<NodeFailure>,
}

/// What [`LockManager::list`](crate::LockManager::list) has found: the keys that are locked at any node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LockList {
    /// In alphabetical order, without the namespace.
    pub keys: Vec<LockKey>,
    /// Whether these are all of them at the nodes that have answered.
    pub is_complete: bool,
    /// The nodes that could not be asked, and why; of a cluster, the masters that could not: the keys of their slots are missing.
    pub failures: Vec<NodeFailure>,
    /// How many nodes must agree on a lock. See [`is_heard`](Self::is_heard).
    pub needed: usize,
    /// How many nodes have not told of all their keys.
    pub(crate) unheard: usize,
}

impl LockList {
    /// Whether enough nodes have answered that every lock is held at one of them. A cluster has if all its masters have.
    #[must_use]
    pub const fn is_heard(&self) -> bool {
        self.unheard < self.needed
    }
}
