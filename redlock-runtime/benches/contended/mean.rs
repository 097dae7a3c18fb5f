//! Mean of a set of durations.

use std::time::Duration;

/// Returns the mean, or `None` for an empty set.
pub(crate) fn mean(durations: &[Duration]) -> Option<Duration> {
    let count = u32::try_from(durations.len()).ok()?;
    durations.iter().sum::<Duration>().checked_div(count)
}
