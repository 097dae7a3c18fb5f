//! Traces of a token at a node.

use super::in_flight::Kind;

/// Possible state of the token at a node, from its answers and from missing answers. A lost reply and a cut connection
/// mean "maybe".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Footprint {
    None,
    /// Token may be the holder.
    Key,
    /// Token may be in the queue, from which only a release removes it.
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
