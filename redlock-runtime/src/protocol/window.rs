//! Time windows in which a job runs once: the index of a window, and the time for which its key stays taken.

use crate::error::LockError;
use crate::protocol::timing::MAX_TTL;
use std::time::Duration;

/// Shortest allowed period. In shorter windows, the clock errors of servers and the delays of timers are not small.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

/// Time since 1970, cut into windows of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    period: Duration,
    /// Start of one of the windows; `None` for half a period before each multiple of the period.
    start: Option<Duration>,
}

/// One window, and the position of the present time in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) index: i64,
    pub(crate) ends_in: Duration,
    period: Duration,
}

impl Windows {
    /// Creates windows around the multiples of `period`, so that a tick at a multiple may come too early or too late.
    pub(crate) const fn around_multiples(period: Duration) -> Self {
        Self { period, start: None }
    }

    /// Moves the windows so that one of them begins at `start`.
    pub(crate) const fn beginning_at(self, start: Duration) -> Self {
        Self { start: Some(start), ..self }
    }

    /// # Errors
    /// [`LockError::Configuration`] for a period that is out of range.
    pub(crate) fn check(&self) -> Result<(), LockError> {
        let Self { period, .. } = self;
        if *period < SHORTEST_PERIOD {
            return Err(LockError::configuration(format!(
                "a once_per of {period:?} is too short for the clocks of servers: at least {SHORTEST_PERIOD:?} are needed"
            )));
        }
        if *period > MAX_TTL {
            return Err(LockError::configuration(format!(
                "a once_per of {period:?} is too long: at most 30 days are allowed"
            )));
        }
        Ok(())
    }

    /// Returns the window at `time`. The period is not zero.
    pub(crate) fn at(&self, time: Duration) -> Window {
        let (time, period) = (nanos(time), nanos(self.period).max(1));
        let start = self.start.map_or(-period / 2, nanos);
        let (index, passed) = ((time - start).div_euclid(period), (time - start).rem_euclid(period));
        let left = u64::try_from(period - passed).unwrap_or(u64::MAX);
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        Window { index, ends_in: Duration::from_nanos(left), period: self.period }
    }
}

impl Window {
    /// Returns the time for which the key of the window stays taken: until one period after its end. At that time, no
    /// server clock that is less than a period behind the others is still in this window.
    pub(crate) const fn rest(&self) -> Duration {
        self.ends_in.saturating_add(self.period)
    }

    /// Returns the longest wait for the key of the window. The key stays taken for longer, so that only the first call
    /// of the window gets it.
    pub(crate) fn limit(&self) -> Duration {
        self.ends_in.saturating_add(self.period / 2)
    }

    pub(crate) const fn period(&self) -> Duration {
        self.period
    }
}

/// Returns the median; for an even number of times, the middle between the two middle ones. `None` if there are no
/// times.
pub(crate) fn median(times: &mut [Duration]) -> Option<Duration> {
    times.sort_unstable();
    let middle = times.len() / 2;
    let (below, above) = (times.get(times.len().checked_sub(1)? / 2)?, times.get(middle)?);
    Some(*below + above.saturating_sub(*below) / 2)
}

fn nanos(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use std::collections::BTreeMap;

    const PERIOD: u64 = 900_000;
    const WINDOWS: Windows = Windows::around_multiples(millis(PERIOD));
    const FIRST: u64 = 1_960_000;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn window_is_centered_on_a_period_multiple_or_begins_as_configured() {
        let from = |start| WINDOWS.beginning_at(millis(start));
        let table = [
            (WINDOWS, 0, 0, 450_000),
            (WINDOWS, 449_999, 0, 1),
            (WINDOWS, 450_000, 1, 900_000),
            (WINDOWS, 900_000, 1, 450_000),
            (WINDOWS, 1_349_999, 1, 1),
            (from(0), 0, 0, 900_000),
            (from(0), 899_999, 0, 1),
            (from(300_000), 299_999, -1, 1),
            (from(300_000), 1_200_000, 1, 900_000),
            // Equal windows with other indexes.
            (from(300_000 + 7 * PERIOD), 1_200_000, -6, 900_000),
        ];
        for (windows, time, index, ends_in) in table {
            let window = windows.at(millis(time));
            assert_eq!((window.index, window.ends_in), (index, millis(ends_in)), "{windows:?} at {time}");
            assert_eq!(window.rest(), millis(ends_in + PERIOD));
        }
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        for windows in [WINDOWS, WINDOWS.beginning_at(Duration::MAX), Windows::around_multiples(Duration::MAX)] {
            for time in [Duration::ZERO, Duration::MAX] {
                let window = windows.at(time);
                assert!(window.rest() >= window.limit(), "{window:?}");
            }
        }
    }

    #[test]
    fn periods_are_bounded() {
        let check = |period| Windows::around_multiples(period).check().map_err(|error| error.to_string());
        for period in [SHORTEST_PERIOD, MAX_TTL] {
            assert_eq!(check(period), Ok(()));
        }
        assert!(check(Duration::ZERO).unwrap_err().contains("too short"));
        assert!(check(MAX_TTL + millis(1)).unwrap_err().contains("too long"));
    }

    #[test]
    fn median_of_times_is_the_middle_value() {
        let table: [(&[u64], Option<u64>); 6] = [
            (&[], None),
            (&[7], Some(7)),
            (&[9, 7], Some(8)),
            (&[9, 1, 7], Some(7)),
            (&[3, 9, 1, 7], Some(5)),
            (&[0, 1_000, 2, 4, 3], Some(3)),
        ];
        for (times, expected) in table {
            let mut times: Vec<_> = times.iter().copied().map(millis).collect();
            assert_eq!(median(&mut times), expected.map(millis), "{times:?}");
        }
    }

    /// Simulates three processes with a tick at each of a thousand full periods, over three nodes whose clocks are 50
    /// ms apart. Each tick is `late` by this number of milliseconds, or early if negative; any two nodes answer first.
    /// Returns the number of windows that did not run exactly once.
    fn not_once(windows: Windows, mut late: impl FnMut(&mut Rng) -> i64) -> usize {
        let (mut random, mut taken) = (Rng::with_seed(7), BTreeMap::<i64, Duration>::new());
        let mut runs = BTreeMap::<i64, u32>::new();
        let mut ticks: Vec<_> = (FIRST..FIRST + 1000)
            .flat_map(|tick| [tick; 3])
            .map(|tick| (tick * PERIOD).saturating_add_signed(late(&mut random)))
            .collect();
        ticks.sort_unstable();
        for time in ticks.into_iter().map(millis) {
            let clocks = [time.saturating_sub(millis(25)), time, time + millis(25)];
            let silent = random.usize(..3);
            let mut answers: Vec<_> = (0..3).filter(|node| *node != silent).map(|node| clocks[node]).collect();
            let window = windows.at(median(&mut answers).unwrap());
            // The nodes expire a key by their own clocks, which run at equal rates.
            if taken.get(&window.index).is_none_or(|until| *until <= time) {
                taken.insert(window.index, time + window.rest());
                *runs.entry(window.index).or_default() += 1;
            }
        }
        let first = i64::try_from(FIRST).unwrap();
        (first..first + 1000).filter(|index| runs.get(index) != Some(&1)).count() + runs.len().saturating_sub(1000)
    }

    #[test]
    fn each_of_a_thousand_windows_runs_once_for_any_tick_jitter() {
        assert_eq!(not_once(WINDOWS, |random| random.i64(-200..=200)), 0, "around");
        assert_eq!(not_once(WINDOWS, |random| random.i64(0..=200)), 0, "all behind");
        assert_eq!(not_once(WINDOWS, |random| random.i64(-200..=0)), 0, "all ahead");
        assert_eq!(not_once(WINDOWS, |random| random.i64(-10..=10)), 0, "at a full period with jitter");
        let given = WINDOWS.beginning_at(millis(PERIOD / 2));
        assert_ne!(not_once(given, |random| random.i64(-10..=10)), 0, "numbered from another one");
    }

    #[test]
    fn windows_that_begin_at_the_ticks_are_missed_or_run_twice() {
        let at_the_edge = WINDOWS.beginning_at(Duration::ZERO);
        assert_ne!(not_once(at_the_edge, |random| random.i64(-10..=10)), 0, "at the edge");
        assert_eq!(not_once(at_the_edge, |random| 450_000 + random.i64(-200..=200)), 0, "in the middle");
    }
}
