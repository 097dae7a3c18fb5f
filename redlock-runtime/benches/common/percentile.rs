//! The percentile of a set of durations.

use std::time::Duration;

/// The shortest one that at least `percent` of all do not exceed, to the next sample; zero if there is none.
pub(crate) fn percentile(durations: &[Duration], percent: usize) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}
