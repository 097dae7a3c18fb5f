//! Margins that are added to the clock of ballots for slots whose ballots were refused a moment ago.
//!
//! A process only has an estimate of the servers' clocks. If the estimates of two processes differ by more than a change of
//! owners takes, the process that lags is refused in each of its turns. The first refusal shows by how much its ballot was
//! too small. The process adds that much to its next ballots for the slot.
//!
//! 1. A margin is measured from the estimate of its own process and is at most [`MAX_MARGIN`]. So processes that refuse each other
//!    cannot drive each other away from the servers' clocks.
//! 2. A margin applies to its slot only, and expires [`LIFETIME`] after the last refusal that confirmed it.
//! 3. A ballot that was too small by more than [`MAX_MARGIN`] sets no margin. Either a server's clock was set back, or many ballots
//!    were drawn within a millisecond. Neither shows how much the estimate lags.

use super::clock::Instant;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Largest margin, in ballots: one millisecond. Too small: a process that lags by more is refused in each of its turns. Too large:
/// after a loss of all data, ballots may start below those from before, for that long.
pub(super) const MAX_MARGIN: u64 = 64;

/// Lifetime of a margin: 10 s. Too short: a process that lags pays a further round more often. Too long: ballots stay ahead of the
/// servers' clocks although other processes no longer use the slot.
pub(super) const LIFETIME: Duration = Duration::from_secs(10);

const MARGIN_BITS: u32 = MAX_MARGIN.ilog2() + 1;

/// Margins of all slots.
#[derive(Debug)]
pub(super) struct BallotMargins {
    /// Allocated when the first margin is recorded.
    margins: OnceLock<Box<[AtomicU64]>>,
    slots: u16,
}

impl BallotMargins {
    pub(super) const fn new(slots: u16) -> Self {
        Self { margins: OnceLock::new(), slots }
    }

    /// Returns the margin of `slot` in ballots; 0 if there is none or it has expired.
    pub(super) fn get(&self, slot: u16, now: Instant) -> u64 {
        let margins = self.margins.get().and_then(|margins| margins.get(usize::from(slot)));
        margins.map_or(0, |margin| unpack(margin.load(Ordering::Relaxed), now))
    }

    /// Records that a ballot for `slot`, drawn without a margin, would have been too small by `shortfall`.
    pub(super) fn record(&self, slot: u16, shortfall: u64, now: Instant) {
        if shortfall == 0 || shortfall > MAX_MARGIN {
            return;
        }
        let margins = self.margins.get_or_init(|| (0..self.slots).map(|_| AtomicU64::new(0)).collect());
        if let Some(margin) = margins.get(usize::from(slot)) {
            let pack = |packed| Some(now.after(LIFETIME).millis() << MARGIN_BITS | shortfall.max(unpack(packed, now)));
            // Cannot fail: the closure never returns `None`.
            let _ = margin.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pack);
        }
    }
}

/// Returns the margin of a packed pair of the time of its expiry, in milliseconds, and itself.
fn unpack(packed: u64, now: Instant) -> u64 {
    let margin = packed & ((1 << MARGIN_BITS) - 1);
    if now.millis() < packed >> MARGIN_BITS { margin } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: u16 = 7;

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn margin_grows_with_larger_shortfalls_and_applies_to_its_slot_alone() {
        let margins = BallotMargins::new(SLOT + 2);
        assert_eq!(margins.get(SLOT, at(0)), 0);
        for (shortfall, expected) in [(3, 3), (9, 9), (2, 9), (MAX_MARGIN, MAX_MARGIN)] {
            margins.record(SLOT, shortfall, at(1));
            assert_eq!(margins.get(SLOT, at(1)), expected, "{shortfall}");
        }
        assert_eq!([SLOT - 1, SLOT + 1, u16::MAX].map(|slot| margins.get(slot, at(1))), [0; 3]);
    }

    #[test]
    fn margin_expires_after_the_last_refusal() {
        let (margins, lifetime) = (BallotMargins::new(SLOT + 2), LIFETIME.as_secs());
        margins.record(SLOT, 9, at(1));
        margins.record(SLOT, 3, at(5));
        assert_eq!([4 + lifetime, 5 + lifetime].map(|seconds| margins.get(SLOT, at(seconds))), [9, 0]);
        margins.record(SLOT, 3, at(5 + lifetime));
        assert_eq!(margins.get(SLOT, at(5 + lifetime)), 3, "an expired margin is not renewed");
    }

    #[test]
    fn shortfall_above_the_maximum_sets_no_margin() {
        let margins = BallotMargins::new(SLOT + 2);
        for shortfall in [0, MAX_MARGIN + 1, u64::MAX] {
            margins.record(SLOT, shortfall, at(1));
            assert_eq!(margins.get(SLOT, at(1)), 0, "{shortfall}");
        }
    }
}
