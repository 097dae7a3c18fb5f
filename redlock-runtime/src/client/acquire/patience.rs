//! Time limits of a call, for holders and for answers.

use super::Call;
use crate::request::Wait;
use crate::time::clock::Instant;
use std::time::Duration;

impl Call<'_> {
    /// Returns the end of the wait; `None` to wait forever.
    pub(super) fn limit(&self) -> Option<Instant> {
        match self.wait {
            Wait::None => Some(self.begun),
            Wait::For(limit) => Some(self.begun.after(limit)),
            Wait::Forever => None,
        }
    }

    /// Returns `true` if the call waits for holders.
    pub(super) fn waits(&self) -> bool {
        self.wait != Wait::None
    }

    /// Returns the rest of the wait; `None` to wait forever.
    pub(super) fn left(&self) -> Option<Duration> {
        self.limit().map(|limit| limit.since(self.now()))
    }

    /// Returns `true` if there is time for one more try.
    pub(super) fn has_time(&self) -> bool {
        self.left().is_none_or(|left| !left.is_zero())
    }

    /// Returns `true` if the rest of the wait is too short: nodes asked now have less than a node timeout to answer.
    pub(super) fn comes_late(&self) -> bool {
        let Some(left) = self.left().filter(|_| self.waits()) else { return false };
        let node_timeout = self.shared().node_timeout(self.wanted.ttl);
        left.is_zero() || left < node_timeout && node_timeout <= self.now().since(self.begun)
    }

    /// Returns the time limit of the first try.
    pub(super) fn patience(&self) -> Duration {
        let node_timeout = self.shared().node_timeout(self.wanted.ttl);
        match (self.wait, self.left()) {
            // A call that does not wait for holders still waits for answers.
            (Wait::None, _) | (_, None) => node_timeout,
            (_, Some(left)) => node_timeout.min(left),
        }
    }
}
