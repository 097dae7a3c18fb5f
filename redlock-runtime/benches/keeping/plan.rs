//! Extent of the measurements, and the durations that the faults use.

use crate::fault::Fault;
use std::time::Duration;

/// `ttl` of all locks, and `max_ttl` of our managers.
pub(crate) const TTL: Duration = Duration::from_secs(2);

/// Number of locks that are held at once in each trial.
pub(crate) const LOCKS: usize = 20;

/// Pause between the return of a node and the failure of the next one. It is long enough for the node to stop
/// abstaining and to be asked again.
pub(crate) const RECOVERY: Duration = Duration::from_secs(5);

/// Duration of the observation after a fault. It is long enough for every lease to be renewed or to end.
pub(crate) const WATCHED: Duration = Duration::from_secs(4);

/// Pause in which connections are established and waiting calls are queued.
pub(crate) const SETTLING: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) sizes: &'static [usize],
    complete: bool,
}

impl Plan {
    /// Reads the arguments. `--quick` runs a short plan; only the whole plan writes the table.
    pub(crate) fn from_arguments() -> Self {
        let is_quick = std::env::args().any(|argument| argument == "--quick");
        Self { sizes: if is_quick { &[1, 3] } else { &[1, 3, 5] }, complete: !is_quick }
    }

    pub(crate) const fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns the number of trials for a fault. Slow faults have fewer trials.
    pub(crate) const fn turns(&self, fault: Fault) -> usize {
        match fault {
            _ if !self.complete => 1,
            Fault::OneAfterTheOther => 1,
            Fault::DownAtFirst | Fault::Frozen | Fault::Cut | Fault::MajorityKilled => 2,
            Fault::Emptied | Fault::Unreachable | Fault::FailedOver => 3,
        }
    }
}
