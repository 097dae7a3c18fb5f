//! Points in time that can be compared between processes on one machine.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Returns the time of the monotonic clock, which all processes of the machine share.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::try_from(time).expect("the monotonic clock starts at zero")
}
