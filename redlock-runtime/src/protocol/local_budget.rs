//! Limits for the precedence of local calls while other processes wait.

use std::time::Duration;

/// Limits for passing a lock among the calls of one process while other processes wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalBudget {
    pub(crate) passes: u32,
    pub(crate) time: Duration,
}

impl LocalBudget {
    /// Returns `true` if one more local call may go first. `passes` local calls have gone first since the first known
    /// waiter, which appeared `waited` ago.
    pub(crate) fn allows(self, passes: u32, waited: Duration) -> bool {
        passes < self.passes && waited < self.time
    }
}

/// Smaller: callers are served closer to the order of their arrival. Larger: more calls succeed in total, because a
/// local pass sends nothing.
impl Default for LocalBudget {
    fn default() -> Self {
        Self { passes: 16, time: Duration::from_millis(20) }
    }
}
