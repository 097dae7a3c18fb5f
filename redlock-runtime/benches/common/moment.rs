//! Points in time that processes on one machine can compare.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The monotonic clock of the machine, the same in every process.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::try_from(time).expect("the monotonic clock starts at zero")
}
