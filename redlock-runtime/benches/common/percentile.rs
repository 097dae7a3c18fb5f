//! The percentile of a set of durations.

use std::time::Duration;

/// The shortest one that at least `percent` of all do not exceed (nearest rank); zero if there is none.
pub(crate) fn percentile(durations: &[Duration], percent: usize) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}
