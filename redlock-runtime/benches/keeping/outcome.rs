//! Outcome for one lock.

use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// `true` if the holder's call failed, or the next holder began before the release.
    pub(crate) is_lost: bool,
    /// Time from the fault until the holder noticed the loss.
    pub(crate) known: Option<Duration>,
    /// Time until the next holder began, measured from the fault if the lock was lost, and otherwise from the release.
    /// `None` if the next holder never began.
    pub(crate) next: Option<Duration>,
    /// Duration for which both bodies ran at the same time.
    pub(crate) both: Duration,
}

impl Outcome {
    /// Computes the outcome of a lock that was released at `released`, or whose holder noticed the loss at `known`.
    pub(crate) fn new(
        strikes: &[Instant],
        released: Instant,
        known: Option<Instant>,
        ran_until: Instant,
        next: Option<Instant>,
    ) -> Self {
        let is_lost = known.is_some() || next.is_some_and(|next| next < released);
        let first_seen = known.into_iter().chain(next).min().filter(|_| is_lost);
        // If there were several faults, measure from the last one before the loss was noticed.
        let strike = strikes.iter().rfind(|strike| first_seen.is_some_and(|seen| **strike <= seen)).copied();
        let since = strike.unwrap_or(released);
        Self {
            is_lost,
            known: known.map(|known| known.saturating_duration_since(since)),
            next: next.map(|next| next.saturating_duration_since(since)),
            both: next.map_or(Duration::ZERO, |next| ran_until.saturating_duration_since(next)),
        }
    }
}
