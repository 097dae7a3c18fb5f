//! The mean of a set of durations.

use std::time::Duration;

/// `None` if there are none.
pub(crate) fn mean(durations: &[Duration]) -> Option<Duration> {
    let count = u32::try_from(durations.len()).ok()?;
    durations.iter().sum::<Duration>().checked_div(count)
}
