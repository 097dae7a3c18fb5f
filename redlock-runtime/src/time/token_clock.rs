//! The hybrid logical clock that the times inside of tokens come from.
//!
//! Tokens are served in the order of their times, so a manager whose wall clock is behind would be overtaken by all
//! others for as long as it is. A clock that never stays behind what it has seen of others keeps the order fair.
//!
//! Source: Kulkarni et al., "Logical Physical Clocks", 2014. Here the logical part counts on into the physical one.

use crate::time::clock::Clock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The time inside of a token: 48 bits of milliseconds since 1970, then a counter of 12 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TokenTime(u64);

const COUNTER_BITS: u32 = 12;

/// A time that is further ahead of our wall clock than this, in milliseconds (an hour), is not believed. Smaller, a process
/// whose clock is behind by as much is served before all others; larger, one clock that is wrong, or one token that
/// somebody has made up, takes the clocks of all processes along with it for as long.
const MOST_AHEAD: u64 = 3_600_000;

impl TokenTime {
    /// The end of time: the year 10889.
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

/// Gives out times that are later than all it has given out or seen.
#[derive(Debug)]
pub(crate) struct TokenClock {
    clock: Clock,
    latest: AtomicU64,
}

impl TokenClock {
    /// Follows the wall clock of `clock`.
    pub(crate) const fn new(clock: Clock) -> Self {
        Self { clock, latest: AtomicU64::new(0) }
    }

    /// The next time: that of the wall clock, or just after the latest time known when that is not behind it.
    pub(crate) fn next(&self) -> TokenTime {
        let wall = TokenTime::new(self.clock.wall_ms(), 0).0;
        let after = |latest: u64| wall.max(latest + 1).min(TokenTime::MAX.0);
        // Never fails: the closure always has a next value.
        let update = self.latest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |latest| Some(after(latest)));
        TokenTime(update.map_or_else(after, after))
    }

    /// No time that is given out from now on is before `seen`, unless that is out of this world.
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

    /// A clock whose wall clock is wrong by `skew_ms`.
    fn skewed(skew_ms: i64) -> TokenClock {
        let error = ClockError { skew_ms, ..ClockError::default() };
        TokenClock::new(Clock::Tokio { origin: tokio::time::Instant::now(), error })
    }

    #[test]
    fn times_increase_strictly_and_follow_the_wall_clock() {
        let clock = TokenClock::new(Clock::Boot);
        let before = Clock::Boot.wall_ms();
        let times: Vec<_> = (0..10_000).map(|_| clock.next()).collect();
        assert!(times.is_sorted_by(|a, b| a < b));
        assert!((before..=Clock::Boot.wall_ms() + 1).contains(&times[0].millis()));
    }

    #[tokio::test(start_paused = true)]
    async fn virtual_time_moves_it() {
        let clock = TokenClock::new(Clock::tokio());
        let first = clock.next();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.next().millis() - first.millis(), 3_600_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_behind_catches_up_with_what_it_sees() {
        let (ahead, behind) = (skewed(10_000), skewed(-10_000));
        let seen = ahead.next();
        assert!(behind.next() < seen);
        behind.observe(seen);
        assert_eq!(behind.next(), TokenTime::new(seen.millis(), 1));
        ahead.observe(TokenTime::new(1, 0));
        assert_eq!(ahead.next(), TokenTime::new(seen.millis(), 1), "what is past changes nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_that_is_far_ahead_is_not_believed() {
        let clock = skewed(0);
        let now = clock.next().millis();
        for (ahead, is_believed) in [(MOST_AHEAD, true), (MOST_AHEAD + 60_000, false), (1 << 45, false)] {
            let seen = TokenTime::new(now + ahead, 0);
            clock.observe(seen);
            assert_eq!(clock.next() > seen, is_believed, "{ahead} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_counter_carries_into_the_milliseconds() {
        let clock = skewed(-10_000);
        let seen = TokenTime::new(clock.next().millis() + 5, 0xFFF);
        clock.observe(seen);
        assert_eq!(clock.next(), TokenTime::new(seen.millis() + 1, 0));
    }

    #[test]
    fn the_end_of_time_is_no_overflow() {
        let clock = TokenClock { clock: Clock::Boot, latest: AtomicU64::new(TokenTime::MAX.0) };
        assert_eq!((clock.next(), clock.next()), (TokenTime::MAX, TokenTime::MAX));
    }
}
