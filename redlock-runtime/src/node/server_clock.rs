//! Detects steps of a server's clock and pauses of ours, and converts times of the server to our clock.
//!
//! Redis expires keys by the wall clock of its machine. If this clock is set forward, existing keys expire earlier than their holders
//! expect.
//!
//! A server announces a claim with the time at which the claim began ([`ServerClock::earliest`]). The last answer gives an upper bound of
//! the offset between its clock and ours, and so the earliest time of the start by our clock. This time must not be later than now:
//! otherwise the clock was set forward in between.
//!
//! Two steps stay hidden. An announcement hides a step that is at most as long as its delay, until the next answer. The allowance for the
//! drift of healthy clocks hides a smaller step: 2 ms and 200 ppm of the time since the last answer. While locks are taken, this time is at
//! most about 10 s ([`FRESH`](super::server_facts::FRESH)). The proof of a lease allows for the larger drift factor.

use crate::protocol::lease;
use crate::protocol::rules::{Rule, Rules};
use crate::protocol::timing::EXPIRY_PRECISION;
use crate::time::ballot_clock::{Ahead, USUAL_DRIFT};
use crate::time::clock::Instant;
use std::time::Duration;

/// Maximum age of an answer that can prove a claim. Too small: waiters, which ask once a second, prove claims less often. Too large: a step
/// of the clock can stay hidden for longer.
const OLDEST: Duration = Duration::from_secs(10);

/// Known bounds of the offset of a server's clock.
#[derive(Clone, Debug)]
pub(crate) struct ServerClock {
    drift_factor: f64,
    last: Option<Offset>,
    /// Bounds from only the last answer on the present connection.
    latest: Option<Offset>,
    /// Lower bound of the offset, from the fastest answer on the present connection.
    least: Option<Ahead>,
    /// Lower bound at the last report.
    told: Option<Ahead>,
}

/// Bounds of the difference between the two clocks, in microseconds, and the time since when they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset {
    least: i64,
    most: i64,
    seen: Instant,
}

impl ServerClock {
    pub(crate) const fn new(drift_factor: f64) -> Self {
        Self { drift_factor, last: None, latest: None, least: None, told: None }
    }

    /// Returns the lower bound of the offset, if it differs from the last reported one by at least this many microseconds.
    pub(crate) fn news(&mut self, difference: u64) -> Option<Ahead> {
        let ahead = self.least?;
        if self.told.is_some_and(|told| told.differs_by(ahead) < difference) {
            return None;
        }
        self.told = Some(ahead);
        Some(ahead)
    }

    /// Forgets the last report: another value is used instead.
    pub(crate) const fn untold(&mut self) {
        self.told = None;
    }

    /// Updates the lower bound by an answer. The bound of the fastest answer is kept, until the clocks may have drifted apart by more than
    /// the extra delay of a later answer.
    fn compare(&mut self, now: Offset) {
        let ahead = Ahead::new(now.least, now.seen);
        // The second condition: the clock was set back.
        if self.least.is_none_or(|least| least <= ahead || now.most < least.at(now.seen)) {
            self.least = Some(ahead);
        }
    }

    /// Evaluates the `time` of the server, since 1970, from an answer that was `received` to a query that was `sent`.
    ///
    /// If its clock has advanced by more than the drift of healthy clocks can explain, the result is the maximum size of this step.
    pub(crate) fn observe(&mut self, time: Duration, sent: Instant, received: Instant) -> Option<Duration> {
        let now = Offset::between(time, sent, received);
        self.latest = Some(now);
        self.compare(now);
        let last = self.last.replace(now)?;
        let last = last.widened(self.usual_drift(sent.since(last.seen)));
        if last.most < now.least {
            return u64::try_from(now.most.saturating_sub(last.least)).ok().map(Duration::from_micros);
        }
        if last.least <= now.most {
            // Both bounds are valid: a slow answer makes the earlier knowledge no less precise.
            self.last = Some(Offset { least: last.least.max(now.least), most: last.most.min(now.most), ..now });
        }
        None
    }

    /// Forgets the connection: the next one may be to another server.
    pub(crate) const fn disconnected(&mut self) {
        (self.latest, self.least) = (None, None);
    }

    /// Returns the earliest time, by our clock, at which the server's clock has shown `time`. A message that arrives `now` contains this
    /// time. Returns `None` if it is unknown.
    pub(crate) fn earliest(&self, time: Duration, now: Instant, rules: Rules) -> Option<Instant> {
        if !rules.apply(Rule::ProofNeedsATime) {
            return Some(now);
        }
        // Not the intersection of several answers: it would hide a step that one of them has revealed.
        let latest = self.latest.filter(|latest| now.since(latest.seen) <= OLDEST)?;
        let age = now.since(latest.seen);
        let at_earliest = |drift| {
            let since_origin = u64::try_from(micros(time).saturating_sub(latest.widened(drift).most)).ok()?;
            Some(Instant::from_origin(Duration::from_micros(since_origin)))
        };
        // A step is more than the drift of healthy clocks. The proof allows for worse clocks.
        let is_stepped = at_earliest(self.usual_drift(age)).is_some_and(|earliest| earliest > now);
        let earliest = at_earliest(micros(lease::drift(age, self.drift_factor)))?;
        (!is_stepped || !rules.apply(Rule::StepVoidsProof)).then_some(earliest)
    }

    /// Returns by how many microseconds two healthy clocks drift apart in `time`, at most.
    fn usual_drift(&self, time: Duration) -> i64 {
        let usual = micros(time) / USUAL_DRIFT + micros(EXPIRY_PRECISION);
        usual.min(micros(lease::drift(time, self.drift_factor)))
    }
}

impl Offset {
    /// Returns the bounds from a `time` that the server read from its clock after `sent` and before `received`.
    fn between(time: Duration, sent: Instant, received: Instant) -> Self {
        let (time, microsecond) = (micros(time), 1);
        let least = time.saturating_sub(micros(received.since_origin()).saturating_add(microsecond));
        let most = time.saturating_add(microsecond).saturating_sub(micros(sent.since_origin()));
        Self { least, most, seen: sent }
    }

    /// Returns the bounds after the clocks may have drifted apart by `drift` microseconds.
    const fn widened(self, drift: i64) -> Self {
        Self { least: self.least.saturating_sub(drift), most: self.most.saturating_add(drift), ..self }
    }
}

/// Converts to microseconds. Durations above 290 000 years are cut to this value.
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

    /// Returns the steps that are found in observations of (time of the server, sent, received), in milliseconds.
    fn steps(observations: &[(u64, u64, u64)]) -> Vec<Option<u64>> {
        let mut clock = ServerClock::new(0.01);
        let observe = |(time, sent, received): &(u64, u64, u64)| {
            let step = clock.observe(Duration::from_millis(START + time), at(*sent), at(*received));
            step.map(|step| u64::try_from(step.as_millis()).unwrap())
        };
        observations.iter().map(observe).collect()
    }

    /// A name, the observations, and the results.
    type Case<T> = (&'static str, &'static [(u64, u64, u64)], &'static [Option<T>]);

    #[test]
    fn clock_step_is_distinguished_from_drift_and_slow_replies() {
        let table: [Case<u64>; 11] = [
            ("even", &[(0, 0, 1), (1000, 1000, 1001), (9000, 9000, 9001)], &[None; 3]),
            ("drift", &[(0, 0, 1), (10_002, 10_000, 10_001), (20_004, 20_000, 20_001)], &[None; 3]),
            ("slow drift", &[(0, 0, 1), (9_998, 10_000, 10_001), (19_996, 20_000, 20_001)], &[None; 3]),
            // At most the step, the drift and both round trips.
            ("forward", &[(0, 0, 1), (6000, 1000, 1001)], &[None, Some(5003)]),
            ("once", &[(0, 0, 1), (6000, 1000, 1001), (7000, 2000, 2001)], &[None, Some(5003), None]),
            ("backward", &[(9000, 0, 1), (1000, 1000, 1001), (6000, 2000, 2001)], &[None, None, Some(4003)]),
            ("after a long pause", &[(0, 0, 1), (302_500, 300_000, 300_001)], &[None, Some(2563)]),
            ("a clock that is slewed by 1 %", &[(0, 0, 1), (10_100, 10_000, 10_001)], &[None, Some(105)]),
            ("a slow answer", &[(0, 0, 1), (1000, 1000, 9000), (9000, 9000, 9001)], &[None; 3]),
            (
                "a step behind a slow answer",
                &[(0, 0, 1), (3000, 1000, 9000), (14_000, 9000, 9001)],
                &[None, None, Some(5006)],
            ),
            ("too small", &[(0, 0, 1), (1002, 1000, 1001)], &[None; 2]),
        ];
        for (name, observations, expected) in table {
            assert_eq!(steps(observations), expected, "{name}");
        }
    }

    /// Returns the start of a claim, relative to the time at which the first answer was sent. The answer is (time of the server, sent,
    /// received); the announcement is (time of the server, arrived).
    fn begun(answer: (u64, u64, u64), (time, arrived): (u64, u64), rules: Rules) -> Option<u64> {
        let mut clock = ServerClock::new(0.01);
        let (told, sent, received) = answer;
        clock.observe(Duration::from_millis(START + told), at(sent), at(received));
        let earliest = clock.earliest(Duration::from_millis(START + time), at(arrived), rules)?;
        u64::try_from(earliest.since(at(sent)).as_millis()).ok()
    }

    #[test]
    fn earliest_moment_of_a_server_time_assumes_the_max_clock_lead() {
        // Without the drift, 1 % of the age of the answer, 2 ms and a microsecond.
        let table = [
            ("at once", (1000, 1000, 1001), (1100, 1100), Some(96)),
            ("later", (1000, 1000, 1001), (2000, 2000), Some(987)),
            ("announced late", (1000, 1000, 1001), (2000, 9000), Some(917)),
            ("the answer took its time", (1500, 1000, 2000), (2000, 2000), Some(487)),
            ("another clock than ours", (700_000, 1000, 1001), (700_100, 1100), Some(96)),
            ("the clock was set back", (9000, 1000, 1001), (8500, 2000), Some(0)),
            ("the clock was set forward", (1000, 1000, 1001), (4000, 2000), None),
            ("the announcement was late as well", (1000, 1000, 1001), (4000, 5000), Some(2957)),
            ("long ago", (1000, 1000, 1001), (11_000, 11_000), Some(9897)),
            ("too long ago", (1000, 1000, 1001), (11_002, 11_002), None),
        ];
        for (name, answer, claim, expected) in table {
            assert_eq!(begun(answer, claim, Rules::default()), expected, "{name}");
        }
    }

    #[test]
    fn earliest_moment_of_a_server_time_is_later_without_a_rule() {
        let without = |rule| Rules { without: Some(rule) };
        let (late, stepped) = ((2000, 9000), (4000, 2000));
        assert_eq!(begun((1000, 1000, 1001), late, without(Rule::ProofNeedsATime)), Some(8000));
        assert_eq!(begun((1000, 1000, 1001), stepped, without(Rule::StepVoidsProof)), Some(2987));
    }

    #[test]
    fn clock_step_in_last_reply_is_not_hidden_by_earlier_replies() {
        let mut clock = ServerClock::new(0.01);
        let of = |millis| Duration::from_millis(START + millis);
        clock.observe(of(0), at(0), at(1));
        // The answer took longer than the step, so that both can be true.
        assert_eq!(clock.observe(of(3000), at(1000), at(9000)), None);
        let earliest = clock.earliest(of(11_000), at(9100), Rules::default()).unwrap();
        assert!(earliest <= at(9000), "{earliest:?}");
    }

    #[test]
    fn fastest_reply_sets_the_lower_bound_of_the_clock_offset() {
        // Answers as (time of the server, sent, received); the reported lower bound of the offset from `START`, in ms.
        let table: [Case<i64>; 7] = [
            ("as soon", &[(0, 0, 5), (1000, 1000, 1005)], &[Some(-5); 2]),
            ("sooner", &[(0, 0, 50), (1000, 1000, 1005)], &[Some(-50), Some(-5)]),
            ("later", &[(0, 0, 5), (1000, 1000, 1050)], &[Some(-5), None]),
            ("later, and long after it", &[(0, 0, 5), (300_000, 300_000, 300_050)], &[Some(-5), Some(-50)]),
            ("it was frozen", &[(9000, 0, 9005), (10_000, 10_000, 10_050)], &[Some(-5), None]),
            ("set forward", &[(0, 0, 5), (6000, 1000, 1050)], &[Some(-5), Some(4950)]),
            ("set back", &[(9000, 0, 5), (1000, 1000, 1050)], &[Some(8995), Some(-50)]),
        ];
        for (name, observations, expected) in table {
            let mut clock = ServerClock::new(0.01);
            let news = observations.iter().map(|(time, sent, received)| {
                clock.observe(Duration::from_millis(START + time), at(*sent), at(*received));
                clock.news(100).map(|ahead| (ahead.at(at(*sent)) + 1).div_euclid(1000) - START.cast_signed())
            });
            assert_eq!(news.collect::<Vec<_>>(), expected, "{name}");
        }
    }

    #[test]
    fn server_clock_is_reset_on_disconnect() {
        let mut clock = ServerClock::new(0.01);
        assert_eq!(clock.earliest(Duration::from_millis(START), at(5), Rules::default()), None);
        clock.observe(Duration::from_millis(START), at(5), at(6));
        let before = clock.news(100).unwrap();
        clock.disconnected();
        assert_eq!(clock.earliest(Duration::from_millis(START), at(7), Rules::default()), None);
        assert_eq!(clock.news(100), None);
        // Another server, with a slower answer: both could have one clock.
        clock.observe(Duration::from_millis(START + 2), at(7), at(50));
        assert!(clock.news(100).is_some_and(|now| now < before));
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let mut clock = ServerClock::new(0.5);
        let end = Instant::from_origin(Duration::MAX);
        assert_eq!(clock.observe(Duration::ZERO, end, end), None);
        assert!(clock.observe(Duration::MAX, at(0), at(0)).is_some());
        assert_eq!(clock.observe(Duration::ZERO, end, end), None);
    }
}
