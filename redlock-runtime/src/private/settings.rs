//! Options of an attribute beside its key, and its source line.

use crate::protocol::hold_options::HoldOptions;
use crate::protocol::window::Windows;
use crate::request::site::Site;
use crate::{Mode, Wait};
use std::time::Duration;

/// Options of an attribute beside its key, and its source line.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub(super) site: &'static Site,
    pub(super) mode: Mode,
    pub(super) permits: Option<u32>,
    pub(super) ttl: Option<Duration>,
    pub(super) wait: Option<Wait>,
    pub(super) hold: HoldOptions,
    pub(super) linger: Option<Duration>,
    pub(super) windows: Option<Windows>,
    pub(super) is_reentrant: bool,
    pub(super) has_ordered_lock: bool,
}

impl Settings {
    /// Settings of an attribute without options: the defaults of the manager apply.
    #[must_use]
    pub const fn of(site: &'static Site) -> Self {
        Self {
            site,
            mode: Mode::Exclusive,
            permits: None,
            ttl: None,
            wait: None,
            hold: HoldOptions { renew: true, ..HoldOptions::UNTIL_BEGUN },
            linger: None,
            windows: None,
            is_reentrant: false,
            has_ordered_lock: true,
        }
    }

    /// Sets `mode = shared`.
    #[must_use]
    pub const fn shared(self) -> Self {
        Self { mode: Mode::Shared, ..self }
    }

    /// Sets `permits = expression`.
    #[must_use]
    pub const fn permits(self, permits: u32) -> Self {
        Self { mode: Mode::Permit, permits: Some(permits), ..self }
    }

    /// Sets `ttl = expression`.
    #[must_use]
    pub const fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// Sets `ttl = literal`, in milliseconds.
    #[must_use]
    pub const fn ttl_millis(self, ttl: u64) -> Self {
        self.ttl(Duration::from_millis(ttl))
    }

    /// Sets `wait = expression`, for a [`Duration`] or a [`Wait`].
    #[must_use]
    pub fn wait(self, wait: impl Into<Wait>) -> Self {
        Self { wait: Some(wait.into()), ..self }
    }

    /// Sets `wait = literal`, in milliseconds. Zero is [`Wait::None`].
    #[must_use]
    pub fn wait_millis(self, wait: u64) -> Self {
        self.wait(Duration::from_millis(wait))
    }

    /// Sets `wait = forever`.
    #[must_use]
    pub fn wait_forever(self) -> Self {
        self.wait(Wait::Forever)
    }

    /// Sets `renew = literal`.
    #[must_use]
    pub const fn renew(mut self, renew: bool) -> Self {
        self.hold.renew = renew;
        self
    }

    /// Sets `max_hold = expression`.
    #[must_use]
    pub const fn max_hold(mut self, longest: Duration) -> Self {
        self.hold.max_hold = Some(longest);
        self
    }

    /// Sets `max_hold = literal`, in milliseconds.
    #[must_use]
    pub const fn max_hold_millis(self, longest: u64) -> Self {
        self.max_hold(Duration::from_millis(longest))
    }

    /// Sets `min_hold = expression`.
    #[must_use]
    pub const fn min_hold(mut self, least: Duration) -> Self {
        self.hold.min_hold = Some(least);
        self
    }

    /// Sets `min_hold = literal`, in milliseconds.
    #[must_use]
    pub const fn min_hold_millis(self, least: u64) -> Self {
        self.min_hold(Duration::from_millis(least))
    }

    /// Sets `linger = expression`.
    #[must_use]
    pub const fn linger(self, linger: Duration) -> Self {
        Self { linger: Some(linger), ..self }
    }

    /// Sets `linger = literal`, in milliseconds.
    #[must_use]
    pub const fn linger_millis(self, linger: u64) -> Self {
        self.linger(Duration::from_millis(linger))
    }

    /// Sets `reentrant`.
    #[must_use]
    pub const fn reentrant(self) -> Self {
        Self { is_reentrant: true, ..self }
    }

    /// Sets `order_check = off`.
    #[must_use]
    pub const fn order_unchecked(self) -> Self {
        Self { has_ordered_lock: false, ..self }
    }

    /// Sets `once_per = expression`.
    #[must_use]
    pub const fn once_per(self, period: Duration) -> Self {
        Self { windows: Some(Windows::around_multiples(period)), ..self }
    }

    /// Sets `once_per = literal`, in milliseconds.
    #[must_use]
    pub const fn once_per_millis(self, period: u64) -> Self {
        self.once_per(Duration::from_millis(period))
    }

    /// Sets `window_start = expression`, after `once_per`.
    #[must_use]
    pub const fn window_start(mut self, start: Duration) -> Self {
        if let Some(windows) = self.windows {
            self.windows = Some(windows.beginning_at(start));
        }
        self
    }

    /// Sets `window_start = literal`, in milliseconds.
    #[must_use]
    pub const fn window_start_millis(self, start: u64) -> Self {
        self.window_start(Duration::from_millis(start))
    }
}
