//! For how long the calls of one process go first while others wait.

use std::time::Duration;

/// How much the calls of one process may go on among themselves while others wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalBudget {
    pub(crate) passes: u32,
    pub(crate) time: Duration,
}

impl Default for LocalBudget {
    fn default() -> Self {
        Self { passes: 16, time: Duration::from_millis(20) }
    }
}
