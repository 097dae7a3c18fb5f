//! What an attribute says beside its key.

use crate::Wait;
use std::time::Duration;

/// What an attribute says beside its key.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub(super) ttl: Option<Duration>,
    pub(super) wait: Option<Wait>,
}

/// Nothing: the manager decides.
pub const DEFAULTS: Settings = Settings { ttl: None, wait: None };

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
}
