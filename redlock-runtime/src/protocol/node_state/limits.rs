//! Limits of the work of one command.

/// Maximum number of waiters that one command admits, or notifies that a name is free. Too small: more of the readers that wait
/// together have to ask by themselves, and the notified waiters come in smaller groups. Too large: the server is busy for longer.
pub(crate) const MOST_STEPS: usize = 64;

/// Cost of an absent waiter that is examined by itself, as a multiple of the cost of one that is removed together with others; see
/// [`gone`](super::gone). A server spends at least ten times as long on it.
pub(crate) const FINDING_COST: usize = 32;

/// Budget of one command for absent waiters: 128 managers, or about 4000 waiters of one manager. The client sends the command again for the rest.
/// Too small: many round trips until a live waiter is found. Too large: the server is busy for longer.
pub(crate) const GONE_BUDGET: usize = 128 * FINDING_COST;

/// Limits of a node. Simulations use smaller limits, because their crowds are small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) steps: usize,
    pub(crate) gone: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: MOST_STEPS, gone: GONE_BUDGET }
    }
}
