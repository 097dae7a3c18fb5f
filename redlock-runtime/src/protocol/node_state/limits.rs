//! Limits of the work of one command.

/// Maximum number of waiters that one command admits, or notifies that a name is free. Too small: more of the readers that wait
/// together have to ask by themselves, and the notified waiters come in smaller groups. Too large: the server is busy for longer.
pub(crate) const MOST_STEPS: usize = 64;

/// Maximum number of absent waiters that one command finds, each with the waiters of its process behind it; the client sends the
/// command again for the rest. Too small: many round trips until a live waiter is found. Too large: the server is busy for longer.
pub(crate) const MOST_GONE: usize = 128;

/// Limits of a node. Simulations use smaller limits, because their crowds are small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) steps: usize,
    pub(crate) gone: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: MOST_STEPS, gone: MOST_GONE }
    }
}
