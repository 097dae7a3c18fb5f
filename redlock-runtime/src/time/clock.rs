//! Time of leases: monotonic, and continues while the machine is suspended.
//!
//! A hypervisor that pauses, restores or migrates a virtual machine stops all clocks of the guest. This clock then lags behind the clocks
//! of the servers until the next answer of a server shows it.

use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Point in time, measured from the origin of its [`Clock`].
///
/// It is stored as nanoseconds plus one. Every held lock keeps a dozen of them, and most may be missing, so an `Option` also takes
/// 8 bytes. It covers 584 years, and stays at their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(NonZeroU64);

impl Instant {
    pub(crate) fn from_origin(elapsed: Duration) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos(elapsed)))
    }

    pub(crate) const fn since_origin(self) -> Duration {
        Duration::from_nanos(self.0.get() - 1)
    }

    /// Returns whole milliseconds from the origin, for atomics.
    pub(crate) const fn millis(self) -> u64 {
        (self.0.get() - 1) / 1_000_000
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is later.
    pub(crate) const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// Returns the nanoseconds from `earlier` to `self`, or zero if `earlier` is later.
    pub(crate) const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.get().saturating_sub(earlier.0.get())
    }

    /// Returns the point `duration` earlier, at the origin at the earliest.
    pub(crate) fn before(self, duration: Duration) -> Self {
        Self(NonZeroU64::MIN.saturating_add((self.0.get() - 1).saturating_sub(nanos(duration))))
    }

    /// Returns the time of a clock that has run too fast by `ppm` parts in a million since the origin.
    pub(crate) fn drifted(self, ppm: i32) -> Self {
        if ppm == 0 {
            return self;
        }
        let error = self.since_origin() / 1_000_000 * ppm.unsigned_abs();
        Self::from_origin(if ppm < 0 { self.since_origin().saturating_sub(error) } else { self.since_origin() + error })
    }

    /// Returns the point `duration` later, at the end of time at the latest.
    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Source of the time of a manager.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// Boot-time clock. A lease ends on the server while this machine is suspended. A clock that stops during a suspend would prove
    /// a lease that has ended long before.
    Boot,
    /// Tokio's clock, which stops under `tokio::time::pause` and jumps with `advance`. In-memory nodes use it, so that tests run in
    /// virtual time.
    Tokio { origin: tokio::time::Instant, error: ClockError },
}

/// Error of a simulated clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockError {
    /// Drift in parts per million. A positive value is too fast.
    pub(crate) drift_ppm: i32,
    /// Error of the wall clock in milliseconds. A positive value is ahead.
    pub(crate) skew_ms: i64,
}

impl Clock {
    /// Returns tokio's clock with the present time as its origin: a paused runtime has its private time.
    pub(crate) fn tokio() -> Self {
        Self::Tokio { origin: tokio::time::Instant::now(), error: ClockError::default() }
    }

    pub(crate) fn now(self) -> Instant {
        match self {
            Self::Boot => Instant::from_origin(boot::now()),
            Self::Tokio { origin, error } => {
                let elapsed = tokio::time::Instant::now().saturating_duration_since(origin);
                Instant::from_origin(elapsed).drifted(error.drift_ppm)
            }
        }
    }

    /// Returns the wall clock in milliseconds since 1970.
    pub(crate) fn wall_ms(self) -> u64 {
        self.wall_micros() / 1000
    }

    /// Returns the wall clock in microseconds since 1970. Tokio's clock has a virtual wall clock, which moves with the virtual
    /// time.
    pub(crate) fn wall_micros(self) -> u64 {
        match self {
            Self::Boot => micros(since_1970()),
            Self::Tokio { error, .. } => {
                let wall = micros(virtual_origin() + self.now().since_origin());
                wall.saturating_add_signed(error.skew_ms.saturating_mul(1000))
            }
        }
    }
}

/// Returns the origin of virtual clocks since 1970, in whole milliseconds. All virtual clocks of the process share it, so they
/// differ by virtual time alone.
pub(crate) fn virtual_origin() -> Duration {
    static ORIGIN: OnceLock<Duration> = OnceLock::new();
    *ORIGIN.get_or_init(|| Duration::from_millis(micros(since_1970()) / 1000))
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(unix)]
mod boot {
    use rustix::time::{ClockId, clock_gettime};
    use std::time::Duration;

    // `CLOCK_MONOTONIC` counts suspended time on macOS. On other Unix systems it is the best clock.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: ClockId = ClockId::Monotonic;

    pub(super) fn now() -> Duration {
        Duration::try_from(clock_gettime(CLOCK)).unwrap_or_default()
    }
}

#[cfg(not(unix))]
mod boot {
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    pub(super) fn now() -> Duration {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        ORIGIN.get_or_init(Instant::now).elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_clock_moves_forward() {
        let start = Clock::Boot.now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(Clock::Boot.now().since(start) >= Duration::from_millis(2));
    }

    #[test]
    fn arithmetic_saturates() {
        let late = Instant::from_origin(Duration::MAX);
        assert_eq!(late.after(Duration::from_secs(1)), late);
        let second = Instant::from_origin(Duration::from_secs(1));
        assert_eq!(second.before(Duration::from_secs(2)), Instant::from_origin(Duration::ZERO));
        assert_eq!(second.after(Duration::from_secs(2)).before(Duration::from_secs(2)), second);
        assert_eq!(Instant::from_origin(Duration::ZERO).since(late), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn tokio_clock_follows_virtual_time() {
        tokio::time::advance(Duration::from_secs(60)).await;
        let clock = Clock::tokio();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now(), Instant::from_origin(Duration::from_secs(3600)));
    }
}
