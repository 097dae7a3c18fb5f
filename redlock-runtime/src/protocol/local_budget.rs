//! How often, and for how long, the calls of one process go first while others wait.

use std::time::Duration;

/// How much the calls of one process may go on among themselves while others wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalBudget {
    pub(crate) passes: u32,
    pub(crate) time: Duration,
}

impl LocalBudget {
    /// Whether one more call may go first, when so many `passes` have gone first since others are known to wait, which is
    /// `waited` ago.
    pub(crate) fn allows(self, passes: u32, waited: Duration) -> bool {
        passes < self.passes && waited < self.time
    }
}

/// Smaller, callers are served nearer to the order in which they came; larger, more calls get through in all, because a
/// local pass sends nothing.
impl Default for LocalBudget {
    fn default() -> Self {
        Self { passes: 16, time: Duration::from_millis(20) }
    }
}
