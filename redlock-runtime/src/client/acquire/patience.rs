//! How long a call waits, for owners and for answers.

use super::Call;
use crate::request::Wait;
use crate::time::clock::Instant;
use std::time::Duration;

impl Call<'_> {
    /// When the wait is over; `None` waits for ever.
    pub(super) fn limit(&self) -> Option<Instant> {
        match self.wait {
            Wait::None => Some(self.begun),
            Wait::For(limit) => Some(self.begun.after(limit)),
            Wait::Forever => None,
        }
    }

    /// Whether the call waits for whoever has the lock.
    pub(super) fn waits(&self) -> bool {
        self.wait != Wait::None
    }

    /// How much of the wait is left; `None` for ever.
    pub(super) fn left(&self) -> Option<Duration> {
        self.limit().map(|limit| limit.since(self.now()))
    }

    /// Whether there is time for one more try.
    pub(super) fn has_time(&self) -> bool {
        self.left().is_none_or(|left| !left.is_zero())
    }

    /// Returns `true` if so much of the wait is over that nodes asked now have less than a node timeout to answer.
    pub(super) fn comes_late(&self) -> bool {
        let Some(left) = self.left().filter(|_| self.waits()) else { return false };
        let node_timeout = self.shared().node_timeout(self.wanted.ttl);
        left.is_zero() || left < node_timeout && node_timeout <= self.now().since(self.begun)
    }

    /// How long the first try may take.
    pub(super) fn patience(&self) -> Duration {
        let node_timeout = self.shared().node_timeout(self.wanted.ttl);
        match (self.wait, self.left()) {
            // A caller who does not wait for holders still waits for answers.
            (Wait::None, _) | (_, None) => node_timeout,
            (_, Some(left)) => node_timeout.min(left),
        }
    }
}
