//! How much is measured, and the durations that all faults are made of.

use crate::fault::Fault;
use std::time::Duration;

/// Of all locks, and the `max_ttl` of our managers.
pub(crate) const TTL: Duration = Duration::from_secs(2);

/// Held at once in each trial.
pub(crate) const LOCKS: usize = 20;

/// From the return of a node to the failure of the next one: by then it has stopped abstaining, and was asked again.
pub(crate) const RECOVERY: Duration = Duration::from_secs(5);

/// How long is looked for losses after a fault: every lease has been renewed by then, or is over.
pub(crate) const WATCHED: Duration = Duration::from_secs(4);

/// Until connections are there and the waiting calls wait.
pub(crate) const SETTLING: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) sizes: &'static [usize],
    complete: bool,
}

impl Plan {
    /// `--quick` is for a look; only the whole plan rewrites the table.
    pub(crate) fn from_arguments() -> Self {
        let is_quick = std::env::args().any(|argument| argument == "--quick");
        Self { sizes: if is_quick { &[1, 3] } else { &[1, 3, 5] }, complete: !is_quick }
    }

    pub(crate) const fn is_complete(&self) -> bool {
        self.complete
    }

    /// How often a fault is tried: once, if it takes long.
    pub(crate) const fn turns(&self, fault: Fault) -> usize {
        match fault {
            _ if !self.complete => 1,
            Fault::OneAfterTheOther => 1,
            Fault::DownAtFirst | Fault::Frozen | Fault::Cut | Fault::MajorityKilled => 2,
            Fault::Emptied | Fault::Unreachable | Fault::FailedOver => 3,
        }
    }
}
