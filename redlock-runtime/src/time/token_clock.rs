//! Hybrid logical clock, the source of the times in tokens.
//!
//! Tokens are served in the order of their times. So all others would overtake a manager whose wall clock is behind. A clock that
//! never stays behind the times of other tokens keeps the order fair.
//!
//! Source: Kulkarni et al., "Logical Physical Clocks", 2014. Here the counter continues into the milliseconds.

use crate::time::clock::Clock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time of a token: 48 bits of milliseconds since 1970, then a counter of 12 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TokenTime(u64);

const COUNTER_BITS: u32 = 12;

/// Maximum distance of a trusted time from our wall clock, in milliseconds: one hour. Too small: a process whose clock is behind by
/// more is served before all others. Too large: one wrong clock or one forged token moves the clocks of all processes forward.
const MOST_AHEAD: u64 = 3_600_000;

impl TokenTime {
    /// End of time: the year 10889.
    const MAX: Self = Self((1 << (48 + COUNTER_BITS)) - 1);

    pub(crate) const fn new(millis: u64, counter: u16) -> Self {
        Self(((millis << COUNTER_BITS) | (counter & 0xFFF) as u64) & Self::MAX.0)
    }

    pub(crate) const fn millis(self) -> u64 {
        self.0 >> COUNTER_BITS
    }

    pub(crate) const fn counter(self) -> u16 {
        (self.0 & 0xFFF) as u16
    }
}

/// Source of times that are later than all earlier and all observed times.
#[derive(Debug)]
pub(crate) struct TokenClock {
    clock: Clock,
    latest: AtomicU64,
}

impl TokenClock {
    /// Creates a clock that follows the wall clock of `clock`.
    pub(crate) const fn new(clock: Clock) -> Self {
        Self { clock, latest: AtomicU64::new(0) }
    }

    /// Returns the wall clock, or the time after the latest known one if that is not in the past.
    pub(crate) fn next(&self) -> TokenTime {
        let wall = TokenTime::new(self.clock.wall_ms(), 0).0;
        let after = |latest: u64| wall.max(latest + 1).min(TokenTime::MAX.0);
        // Never fails: the closure always has a next value.
        let update = self.latest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |latest| Some(after(latest)));
        TokenTime(update.map_or_else(after, after))
    }

    /// Makes all following times later than `seen`, unless `seen` is too far ahead.
    pub(crate) fn observe(&self, seen: TokenTime) {
        if seen.millis() <= self.clock.wall_ms().saturating_add(MOST_AHEAD) {
            self.latest.fetch_max(seen.0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::clock::ClockError;
    use std::time::Duration;

    /// Clock whose wall clock is wrong by `skew_ms`.
    fn skewed(skew_ms: i64) -> TokenClock {
        let error = ClockError { skew_ms, ..ClockError::default() };
        TokenClock::new(Clock::Tokio { origin: tokio::time::Instant::now(), error })
    }

    #[test]
    fn token_times_increase_strictly_and_follow_the_wall_clock() {
        let clock = TokenClock::new(Clock::Boot);
        let before = Clock::Boot.wall_ms();
        let times: Vec<_> = (0..10_000).map(|_| clock.next()).collect();
        assert!(times.is_sorted_by(|a, b| a < b));
        assert!((before..=Clock::Boot.wall_ms() + 1).contains(&times[0].millis()));
    }

    #[tokio::test(start_paused = true)]
    async fn token_clock_follows_virtual_time() {
        let clock = TokenClock::new(Clock::tokio());
        let first = clock.next();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.next().millis() - first.millis(), 3_600_000);
    }

    #[tokio::test(start_paused = true)]
    async fn lagging_token_clock_catches_up_with_observed_tokens() {
        let (ahead, behind) = (skewed(10_000), skewed(-10_000));
        let seen = ahead.next();
        assert!(behind.next() < seen);
        behind.observe(seen);
        assert_eq!(behind.next(), TokenTime::new(seen.millis(), 1));
        ahead.observe(TokenTime::new(1, 0));
        assert_eq!(ahead.next(), TokenTime::new(seen.millis(), 1), "what is past changes nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn token_time_far_ahead_is_ignored() {
        let clock = skewed(0);
        let now = clock.next().millis();
        for (ahead, is_believed) in [(MOST_AHEAD, true), (MOST_AHEAD + 60_000, false), (1 << 45, false)] {
            let seen = TokenTime::new(now + ahead, 0);
            clock.observe(seen);
            assert_eq!(clock.next() > seen, is_believed, "{ahead} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn token_counter_carries_into_the_milliseconds() {
        let clock = skewed(-10_000);
        let seen = TokenTime::new(clock.next().millis() + 5, 0xFFF);
        clock.observe(seen);
        assert_eq!(clock.next(), TokenTime::new(seen.millis() + 1, 0));
    }

    #[test]
    fn token_clock_saturates_at_the_max_time() {
        let clock = TokenClock { clock: Clock::Boot, latest: AtomicU64::new(TokenTime::MAX.0) };
        assert_eq!((clock.next(), clock.next()), (TokenTime::MAX, TokenTime::MAX));
    }
}
