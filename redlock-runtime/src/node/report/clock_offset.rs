//! Difference between the wall clocks of a server and this process.

use std::fmt;
use std::time::Duration;

/// Difference between the wall clocks of a server and this process, measured with an error of half a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ClockOffset {
    /// `true` if the clock of the server is ahead. Otherwise it is behind.
    pub is_ahead: bool,
    /// Absolute difference of the clocks.
    pub offset: Duration,
    /// Largest error of the measurement.
    pub uncertainty: Duration,
}

impl fmt::Display for ClockOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.is_ahead { "ahead" } else { "behind" };
        write!(f, "{:.1?} {direction} (+-{:.1?})", self.offset, self.uncertainty)
    }
}
