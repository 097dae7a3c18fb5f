//! Histogram of durations, with buckets at powers of two of a microsecond.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of buckets, one for each power of two of a microsecond. The last one begins at 12.7 days. Too small: long holds cannot be told
/// apart. Too large: each site takes more memory without use.
const BUCKETS: usize = 42;

/// Histogram of durations, with buckets at powers of two.
///
/// The first bucket counts durations below 1 µs, the next ones durations below 2 µs, 4 µs, 8 µs and so on. The last bucket counts
/// durations of 12.7 days or more.
///
/// # Examples
/// ```
/// # use redlock_runtime::{LockError, LockManager};
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), LockError> {
/// let manager = LockManager::in_memory();
/// let body = async |_: &_| {
///     tokio::time::sleep(std::time::Duration::from_millis(5)).await;
///     Ok::<_, LockError>(())
/// };
/// manager.with_lock("order:7", body).await?;
/// let hold = &manager.stats().sites[0].hold;
/// assert_eq!((hold.count(), hold.mean().as_millis()), (1, 5));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    sum_nanos: u64,
}

/// Returns the bucket of a duration in nanoseconds.
const fn bucket(nanos: u64) -> usize {
    let power = (u64::BITS - (nanos / 1000).leading_zeros()) as usize;
    if power < BUCKETS { power } else { BUCKETS - 1 }
}

/// Returns the exclusive upper bound of the bucket `index`.
const fn bound(index: usize) -> Duration {
    if index + 1 < BUCKETS { Duration::from_micros(1 << index) } else { Duration::MAX }
}

impl Histogram {
    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations.
    #[must_use]
    pub const fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos)
    }

    /// Returns the mean of all durations. Zero if there are none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos.checked_div(self.count()).unwrap_or_default())
    }

    /// Returns an upper bound of a quantile: 0.5 is the median, 0.99 the 99th percentile.
    ///
    /// The result is the upper bound of a bucket, so it is up to twice the true value. It is zero if there are no durations, and
    /// [`Duration::MAX`] for 12.7 days or more.
    ///
    /// `part` is limited to the range from 0 to 1.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Duration {
        #[expect(clippy::cast_precision_loss, reason = "nobody counts so far")]
        let rank = self.count() as f64 * part.clamp(0.0, 1.0);
        let mut seen = 0;
        for (bound, count) in self.buckets().filter(|(_, count)| *count > 0) {
            seen += count;
            #[expect(clippy::cast_precision_loss, reason = "nobody counts so far")]
            if seen as f64 >= rank {
                return bound;
            }
        }
        Duration::ZERO
    }

    /// Returns the buckets from the shortest to the longest, each with its exclusive upper bound and its count.
    ///
    /// The upper bound of the last bucket is [`Duration::MAX`]. The counts are not cumulative.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.counts.iter().enumerate().map(|(index, count)| (bound(index), *count))
    }

    /// Returns the durations that were counted after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = self.clone();
        for (count, before) in since.counts.iter_mut().zip(earlier.counts) {
            *count = count.saturating_sub(before);
        }
        since.sum_nanos = since.sum_nanos.saturating_sub(earlier.sum_nanos);
        since
    }

    /// Adds the durations of `other`.
    pub(super) fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum_nanos = self.sum_nanos.wrapping_add(other.sum_nanos);
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], sum_nanos: 0 }
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("mean", &self.mean())
            .field("p99", &self.quantile(0.99))
            .finish_non_exhaustive()
    }
}

/// Histogram that is being counted, with atomic counters.
#[derive(Debug)]
pub(crate) struct Recorder {
    counts: [AtomicU64; BUCKETS],
    sum_nanos: AtomicU64,
}

impl Recorder {
    /// Counts a duration.
    pub(crate) fn record(&self, nanos: u64) {
        // Relaxed is enough: a reader needs a consistent value of each counter, not of all counters together.
        if let Some(count) = self.counts.get(bucket(nanos)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Histogram {
        let counts = self.counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        Histogram { counts, sum_nanos: self.sum_nanos.load(Ordering::Relaxed) }
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self { counts: [const { AtomicU64::new(0) }; BUCKETS], sum_nanos: AtomicU64::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_power_of_two_has_a_bucket() {
        let micros = |micros: u64| micros * 1000;
        let day = 24 * 3600 * 1_000_000_000;
        let table = [(0, 0), (999, 0), (1000, 1), (micros(1) + 999, 1), (micros(2), 2), (micros(3), 2), (micros(4), 3)];
        for (nanos, expected) in table {
            assert_eq!(bucket(nanos), expected, "{nanos}");
        }
        for nanos in [0, 1000, micros(30_000_000), day, 12 * day] {
            let index = bucket(nanos);
            assert!(Duration::from_nanos(nanos) < bound(index), "{nanos} in {index}");
            assert!(index == 0 || Duration::from_nanos(nanos) >= bound(index - 1), "{nanos} in {index}");
        }
        assert_eq!((bucket(u64::MAX), bound(BUCKETS - 1)), (BUCKETS - 1, Duration::MAX));
    }

    #[test]
    fn histogram_returns_recorded_quantiles_and_mean() {
        let recorder = Recorder::default();
        let empty = recorder.read();
        assert_eq!((empty.quantile(0.5), empty.mean()), (Duration::ZERO, Duration::ZERO));
        for _ in 0..99 {
            recorder.record(1_500_000);
        }
        recorder.record(1_500_000_000);
        let all = recorder.read();
        assert_eq!((all.count(), all.sum()), (100, Duration::from_micros(1_648_500)));
        let table = [(0.0, 2048), (0.5, 2048), (0.99, 2048), (0.995, 2_097_152), (1.0, 2_097_152)];
        for (part, micros) in table {
            assert_eq!(all.quantile(part), Duration::from_micros(micros), "{part}");
        }
        recorder.record(7_000);
        let since = recorder.read().since(&all);
        assert_eq!((since.count(), since.mean()), (1, Duration::from_micros(7)));
    }
}
