//! What became of one lock.

use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Whether the owner was told so, or another one had the lock before its end.
    pub(crate) is_lost: bool,
    /// When the owner knew that it is lost, after the fault.
    pub(crate) known: Option<Duration>,
    /// When the next owner began: after the fault, if the lock was lost; otherwise after its release. `None` if it never did.
    pub(crate) next: Option<Duration>,
    /// For how long both bodies ran.
    pub(crate) both: Duration,
}

impl Outcome {
    /// Of a lock that was to be released at `released`, whose owner knew of its loss at `known`.
    pub(crate) fn new(
        strikes: &[Instant],
        released: Instant,
        known: Option<Instant>,
        ran_until: Instant,
        next: Option<Instant>,
    ) -> Self {
        let is_lost = known.is_some() || next.is_some_and(|next| next < released);
        let first_seen = known.into_iter().chain(next).min().filter(|_| is_lost);
        // Of several faults, the last one before anybody noticed.
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
