//! Lists of permit holders, as the nodes report them to a token.

use crate::lock::OwnerToken;
use crate::time::clock::Instant;
use std::sync::Arc;
use std::time::Duration;

/// State of a token that wants or has a permit.
#[derive(Clone, Debug)]
pub(super) struct Permit {
    /// Time for which the token owns the admission lock at a node after a question.
    pub(super) turn: Duration,
    /// Last report of each node.
    pub(super) told: Box<[PermitReply]>,
    /// Time at which the token returned to the admission lock, if it has; and for each node, `true` if it has confirmed the
    /// permit since.
    pub(super) back_since: Option<Instant>,
    pub(super) confirmed: Box<[bool]>,
    /// Token with which the process has waited as a reader of the key, and which the nodes may still list.
    pub(super) beside: Option<OwnerToken>,
    /// `true` if nodes are asked for entries that last no longer than the admission lock, until the token is admitted.
    pub(super) is_brief: bool,
}

/// Report of a node to a token that wants a permit.
#[derive(Clone, Debug)]
pub(super) enum PermitReply {
    /// No report, or an invalid one.
    Nothing,
    /// Writer holds the lock there, or waits for it with an earlier token.
    Behind,
    Given(HolderList),
}

/// Permit holders that a node has reported.
#[derive(Clone, Debug)]
pub(super) struct HolderList {
    pub(super) others: Arc<[OwnerToken]>,
    /// Number of further permits there under names that are not tokens.
    pub(super) strangers: u32,
    /// Time until which no other token gets a permit at the node.
    pub(super) counts_until: Instant,
    /// End of the first of the other permits, unless it is extended.
    pub(super) first_end: Option<Instant>,
}
