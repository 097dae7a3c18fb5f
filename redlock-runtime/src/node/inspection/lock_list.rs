//! List of locked keys.

use crate::error::NodeFailure;
use crate::lock::LockKey;
use std::collections::BTreeSet;

/// Names of the locks at one node.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) found: BTreeSet<Box<str>>,
    /// `true` if `found` is complete for the nodes that answered.
    pub(crate) are_all: bool,
    /// Members of a cluster that did not answer.
    pub(crate) missing: Vec<NodeFailure>,
}

/// Keys that are locked at any node, as [`LockManager::list`](crate::LockManager::list) finds them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockList {
    /// Locked keys in alphabetical order, without the namespace.
    pub keys: Vec<LockKey>,
    /// `true` if `keys` is complete for the nodes that answered. `false` after the limit or the timeout of
    /// [`ListOptions`](crate::admin::ListOptions).
    pub is_complete: bool,
    /// Nodes that did not answer, with the reason. In a cluster, these are masters, and the keys of their slots are missing.
    pub failures: Vec<NodeFailure>,
    /// Number of nodes that form a majority. See [`has_quorum`](Self::has_quorum).
    pub needed: usize,
    /// Number of nodes that did not list all their keys.
    pub(crate) unheard: usize,
}

impl LockList {
    /// Returns `true` if enough nodes answered: every lock is held by at least one of them. A cluster has answered if all its masters did.
    #[must_use]
    pub const fn has_quorum(&self) -> bool {
        self.unheard < self.needed
    }
}
