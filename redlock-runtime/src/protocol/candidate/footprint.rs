//! What is left of a token at a node.

use super::in_flight::Kind;

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
    pub(crate) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Queue | Kind::Yield => Self::Queue,
            Kind::Take | Kind::Extension | Kind::Release => Self::Key,
        }
    }
}
