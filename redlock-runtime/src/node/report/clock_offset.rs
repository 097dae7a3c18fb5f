//! How the wall clock of a server stands to ours.

use std::fmt;
use std::time::Duration;

/// How the wall clock of a server stands to ours. It is known to half of the round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockOffset {
    /// Whether the server's is ahead; otherwise it is behind.
    pub is_ahead: bool,
    /// By how much.
    pub offset: Duration,
    /// The true offset is no further away than that.
    pub uncertainty: Duration,
}

impl fmt::Display for ClockOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.is_ahead { "ahead" } else { "behind" };
        write!(f, "{:.1?} {direction} (+-{:.1?})", self.offset, self.uncertainty)
    }
}
