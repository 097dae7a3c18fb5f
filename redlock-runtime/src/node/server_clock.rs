//! Notices that the clock of a server was stepped, or that ours has stood still.
//!
//! Redis expires keys by the wall clock of its machine. When that is set forward, keys that were given before end earlier
//! than whoever holds them thinks.

use crate::protocol::lease;
use crate::time::clock::Instant;
use std::time::Duration;

/// What is known of how far the clock of a server is ahead of ours.
#[derive(Clone, Debug)]
pub(crate) struct ServerClock {
    drift_factor: f64,
    last: Option<Offset>,
    /// How far it was ahead when that was last told.
    told: Option<i64>,
}

/// The bounds of the difference between the two clocks, in microseconds, and since when they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset {
    least: i64,
    most: i64,
    seen: Instant,
}

impl ServerClock {
    pub(crate) const fn new(drift_factor: f64) -> Self {
        Self { drift_factor, last: None, told: None }
    }

    /// How far it is ahead of ours, in microseconds, if that is more or less by `least` than what this has told before.
    pub(crate) fn news(&mut self, least: u64) -> Option<i64> {
        let ahead = self.last.map(|Offset { least, most, .. }| least.midpoint(most))?;
        if self.told.is_some_and(|told| told.abs_diff(ahead) < least) {
            return None;
        }
        self.told = Some(ahead);
        Some(ahead)
    }

    /// Takes in the `time` of the server, since 1970, from an answer that was `received` to what was `sent`.
    ///
    /// When its clock has gone ahead by more than drift can explain, the result is by how much at the most.
    pub(crate) fn observe(&mut self, time: Duration, sent: Instant, received: Instant) -> Option<Duration> {
        let now = Offset::between(time, sent, received);
        let last = self.last.replace(now)?;
        let last = last.widened(micros(lease::drift(sent.since(last.seen), self.drift_factor)));
        if last.most < now.least {
            return u64::try_from(now.most.saturating_sub(last.least)).ok().map(Duration::from_micros);
        }
        if last.least <= now.most {
            // Both are true: an answer that took long makes what was known before no less precise.
            self.last = Some(Offset { least: last.least.max(now.least), most: last.most.min(now.most), ..now });
        }
        None
    }
}

impl Offset {
    /// What `time` says, which the server read from its clock after `sent` and before `received`.
    fn between(time: Duration, sent: Instant, received: Instant) -> Self {
        let (time, microsecond) = (micros(time), 1);
        let least = time.saturating_sub(micros(received.since_origin()).saturating_add(microsecond));
        let most = time.saturating_add(microsecond).saturating_sub(micros(sent.since_origin()));
        Self { least, most, seen: sent }
    }

    /// What is left of the knowledge after the clocks may have drifted apart by `drift` microseconds.
    const fn widened(self, drift: i64) -> Self {
        Self { least: self.least.saturating_sub(drift), most: self.most.saturating_add(drift), ..self }
    }
}

/// Microseconds. What is longer than 290 000 years counts as that.
fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_700_000_000_000;

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    /// Observations as (time of the server, sent, received), in milliseconds; the steps that they show.
    fn steps(observations: &[(u64, u64, u64)]) -> Vec<Option<u64>> {
        let mut clock = ServerClock::new(0.01);
        let observe = |(time, sent, received): &(u64, u64, u64)| {
            let step = clock.observe(Duration::from_millis(START + time), at(*sent), at(*received));
            step.map(|step| u64::try_from(step.as_millis()).unwrap())
        };
        observations.iter().map(observe).collect()
    }

    /// A name, what is seen, and the steps that it shows.
    type Case = (&'static str, &'static [(u64, u64, u64)], &'static [Option<u64>]);

    #[test]
    fn steps_are_told_from_drift_and_from_slow_answers() {
        let table: [Case; 9] = [
            ("even", &[(0, 0, 1), (1000, 1000, 1001), (9000, 9000, 9001)], &[None; 3]),
            ("drift", &[(0, 0, 1), (10_100, 10_000, 10_001), (20_200, 20_000, 20_001)], &[None; 3]),
            ("slow drift", &[(0, 0, 1), (9_900, 10_000, 10_001), (19_800, 20_000, 20_001)], &[None; 3]),
            // At most the step, the drift and both round trips.
            ("forward", &[(0, 0, 1), (6000, 1000, 1001)], &[None, Some(5013)]),
            ("once", &[(0, 0, 1), (6000, 1000, 1001), (7000, 2000, 2001)], &[None, Some(5013), None]),
            ("backward", &[(9000, 0, 1), (1000, 1000, 1001), (6000, 2000, 2001)], &[None, None, Some(4013)]),
            ("a slow answer", &[(0, 0, 1), (1000, 1000, 9000), (9000, 9000, 9001)], &[None; 3]),
            (
                "a step behind a slow answer",
                &[(0, 0, 1), (3000, 1000, 9000), (14_000, 9000, 9001)],
                &[None, None, Some(5095)],
            ),
            ("too small", &[(0, 0, 1), (1011, 1000, 1001)], &[None; 2]),
        ];
        for (name, observations, expected) in table {
            assert_eq!(steps(observations), expected, "{name}");
        }
    }

    #[test]
    fn no_time_is_too_large() {
        let mut clock = ServerClock::new(0.5);
        let end = Instant::from_origin(Duration::MAX);
        assert_eq!(clock.observe(Duration::ZERO, end, end), None);
        assert!(clock.observe(Duration::MAX, at(0), at(0)).is_some());
        assert_eq!(clock.observe(Duration::ZERO, end, end), None);
    }
}
