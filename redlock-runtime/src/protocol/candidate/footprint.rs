//! What is left of a token at a node.

use crate::protocol::command::Verb;

/// What a node may know of the token, by what it has answered and by what it has not: a lost reply and a cut connection
/// count as "maybe".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Footprint {
    None,
    /// The token as holder.
    Key,
    /// The token in the queue, which only a release takes it out of.
    Queue,
}

impl Footprint {
    pub(crate) const fn of(verb: Verb) -> Self {
        match verb {
            Verb::Acquire { .. } | Verb::Yield { .. } => Self::Queue,
            Verb::SetNx { .. } | Verb::Extend { .. } | Verb::Adopt { .. } | Verb::Release { .. } => Self::Key,
        }
    }
}
