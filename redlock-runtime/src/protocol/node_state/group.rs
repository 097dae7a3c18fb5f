//! How many waiters one command lets in, or tells that a name is free.

/// So many waiters are let in by one command, or told that a name is free. Smaller, more of a crowd that shares a lock have to ask
/// by themselves, and those who are told come in smaller groups; larger, the server is busy for longer.
pub(crate) const MOST_STEPS: usize = 64;

/// How many that are at a node: [`MOST_STEPS`], but for a simulation, where a crowd is small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group(pub(crate) usize);

impl Default for Group {
    fn default() -> Self {
        Self(MOST_STEPS)
    }
}
