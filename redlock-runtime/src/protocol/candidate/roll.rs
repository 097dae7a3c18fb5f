//! What the nodes tell a token of those who have permits.

use crate::lock::OwnerToken;
use crate::time::clock::Instant;
use std::sync::Arc;
use std::time::Duration;

/// What it takes to have a permit.
#[derive(Clone, Debug)]
pub(super) struct Permit {
    /// For how long the turnstile is the token's at a node after a question.
    pub(super) turn: Duration,
    /// For each node what it has said last.
    pub(super) told: Box<[Told]>,
    /// When the token came back to the turnstile, if it has; and which nodes have said since that they still have its permit.
    pub(super) back_since: Option<Instant>,
    pub(super) confirmed: Box<[bool]>,
    /// The token by which the process has waited as a reader of the key, and which the nodes may still name.
    pub(super) beside: Option<OwnerToken>,
    /// `true` if nodes are asked for entries that last no longer than the turnstile, until the token is admitted.
    pub(super) is_brief: bool,
}

/// What a node has said to a token that wants a permit.
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// Nothing, or nothing that counts.
    Nothing,
    /// Somebody has the lock alone there, or has come before to have it alone.
    Behind,
    Given(Roll),
}

/// What a node has said of those who have permits.
#[derive(Clone, Debug)]
pub(super) struct Roll {
    pub(super) others: Arc<[OwnerToken]>,
    /// So many more have one there, whose names are no tokens.
    pub(super) strangers: u32,
    /// Until when nobody else gets a permit at the node.
    pub(super) counts_until: Instant,
    /// When the first of the others loses its permit, unless it extends it.
    pub(super) first_end: Option<Instant>,
}
