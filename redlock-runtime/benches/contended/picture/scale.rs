//! Axes of one panel: time on a logarithmic scale, and the share of the waits.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Area of the picture in which a panel draws.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Range of the time axis: whole powers of ten in seconds, which includes all waits and one second.
#[derive(Clone, Copy)]
pub(crate) struct Decades {
    first: i32,
    last: i32,
}

impl Decades {
    /// Lower bound of the axis in seconds. Shorter waits are drawn here.
    const SHORTEST: f64 = 1e-5;

    pub(crate) fn around(waits: impl Iterator<Item = Duration>) -> Self {
        let (low, high) = waits
            .map(Self::exponent)
            .fold((0.0_f64, 0.0_f64), |(low, high), exponent| (low.min(exponent), high.max(exponent)));
        #[allow(clippy::cast_possible_truncation, reason = "single digits")]
        let (first, last) = (low.floor() as i32, high.ceil() as i32);
        Self { first, last }
    }

    fn exponent(wait: Duration) -> f64 {
        wait.as_secs_f64().max(Self::SHORTEST).log10()
    }

    /// Returns the exponents of the axis marks.
    pub(crate) fn ticks(self) -> RangeInclusive<i32> {
        self.first..=self.last
    }

    /// Formats an axis mark, such as `10 ms`.
    pub(crate) fn label(exponent: i32) -> String {
        let (unit, zero) = match exponent {
            0.. => ("s", 0),
            -3..0 => ("ms", -3),
            _ => ("µs", -6),
        };
        format!("{} {unit}", 10_u64.pow(exponent.abs_diff(zero)))
    }
}

impl Frame {
    pub(crate) const fn bottom(self) -> f64 {
        self.top + self.height
    }

    pub(crate) const fn right(self) -> f64 {
        self.left + self.width
    }

    /// Returns the horizontal position of a wait.
    pub(crate) fn x(self, decades: Decades, wait: Duration) -> f64 {
        let exponent = Decades::exponent(wait);
        let share = (exponent - f64::from(decades.first)) / f64::from(decades.last - decades.first);
        self.left + self.width * share
    }

    /// Returns the vertical position of a share.
    pub(crate) fn y(self, share: f64) -> f64 {
        self.bottom() - self.height * share
    }
}
