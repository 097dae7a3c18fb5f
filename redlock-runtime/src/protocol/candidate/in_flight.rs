//! Commands that a node has not answered yet.

use crate::protocol::command::Verb;
use crate::time::clock::Instant;

/// A command that was sent, as far as its answer depends on it.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    pub(super) verb: Verb,
    pub(super) sent: Instant,
    /// The lease end that a positive answer proves.
    pub(super) lease_end: Instant,
    /// A yield was sent after it: a positive answer proves nothing any more.
    pub(super) is_void: bool,
    /// A claim came before its answer: which of them is newer is not known.
    pub(super) is_overtaken: bool,
}

impl InFlight {
    pub(super) const fn new(verb: Verb, sent: Instant, lease_end: Instant) -> Self {
        Self { verb, sent, lease_end, is_void: false, is_overtaken: false }
    }
}
