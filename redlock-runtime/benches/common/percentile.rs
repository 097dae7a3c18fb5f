//! Percentile of a set of durations.

use std::time::Duration;

/// Returns the percentile by nearest rank: the smallest duration that is at least as long as `percent` of all. Returns
/// zero for an empty set.
pub(crate) fn percentile(durations: &[Duration], percent: usize) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}
