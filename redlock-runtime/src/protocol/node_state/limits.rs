//! Limits of the work of one command.

/// Maximum number of waiters that one command admits, or notifies that a name is free. Too small: more of the readers that wait
/// together have to ask by themselves, and the notified waiters come in smaller groups. Too large: the server is busy for longer.
pub(crate) const MOST_STEPS: usize = 64;

/// Cost of an absent waiter whose manager has to be notified to find that out, as a multiple of the cost of another waiter of that manager.
/// A server spends about ten times as long on it.
pub(crate) const FINDING_COST: usize = 32;

/// Budget of one command for absent waiters: 128 managers, or 4096 waiters of one manager. The client sends the command again for the rest.
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
