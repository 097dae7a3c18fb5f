//! What an attribute says beside its key.

use crate::Wait;
use crate::protocol::hold_options::HoldOptions;
use std::time::Duration;

/// What an attribute says beside its key.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub(super) ttl: Option<Duration>,
    pub(super) wait: Option<Wait>,
    pub(super) hold: HoldOptions,
}

/// Nothing: the manager decides.
pub const DEFAULTS: Settings =
    Settings { ttl: None, wait: None, hold: HoldOptions { renew: true, max_hold: None, min_hold: None } };

impl Settings {
    /// `ttl = expression`
    #[must_use]
    pub const fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// `ttl = literal`, in milliseconds.
    #[must_use]
    pub const fn ttl_millis(self, ttl: u64) -> Self {
        self.ttl(Duration::from_millis(ttl))
    }

    /// `wait = expression`, for a [`Duration`] or a [`Wait`].
    #[must_use]
    pub fn wait(self, wait: impl Into<Wait>) -> Self {
        Self { wait: Some(wait.into()), ..self }
    }

    /// `wait = literal`, in milliseconds; none for zero.
    #[must_use]
    pub fn wait_millis(self, wait: u64) -> Self {
        self.wait(Duration::from_millis(wait))
    }

    /// `wait = forever`
    #[must_use]
    pub fn wait_forever(self) -> Self {
        self.wait(Wait::Forever)
    }

    /// `renew = literal`
    #[must_use]
    pub const fn renew(mut self, renew: bool) -> Self {
        self.hold.renew = renew;
        self
    }

    /// `max_hold = expression`
    #[must_use]
    pub const fn max_hold(mut self, longest: Duration) -> Self {
        self.hold.max_hold = Some(longest);
        self
    }

    /// `max_hold = literal`, in milliseconds.
    #[must_use]
    pub const fn max_hold_millis(self, longest: u64) -> Self {
        self.max_hold(Duration::from_millis(longest))
    }

    /// `min_hold = expression`
    #[must_use]
    pub const fn min_hold(mut self, least: Duration) -> Self {
        self.hold.min_hold = Some(least);
        self
    }

    /// `min_hold = literal`, in milliseconds.
    #[must_use]
    pub const fn min_hold_millis(self, least: u64) -> Self {
        self.min_hold(Duration::from_millis(least))
    }
}
