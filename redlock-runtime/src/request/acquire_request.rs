//! Options of one acquisition, without the type of its guard.

use crate::lock::{LockKey, Mode};
use crate::protocol::hold_options::HoldOptions;
use crate::protocol::window::Windows;
use crate::request::Wait;
use crate::request::lock_target::LockTarget;
use crate::request::place::Place;
use std::fmt;
use std::panic::Location;
use std::time::Duration;

/// Options of one acquisition. `None` is the manager's default.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct AcquireRequest {
    pub(crate) what: LockTarget,
    pub(crate) mode: Mode,
    /// Maximum number of holders, for a request of a permit.
    pub(crate) permits: Option<u32>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) wait: Option<Wait>,
    pub(crate) hold: HoldOptions,
    /// Time for which the process keeps the lock after the call.
    pub(crate) linger: Option<Duration>,
    /// Windows of time. The lock is acquired at most once in each of them.
    pub(crate) windows: Option<Windows>,
    /// `true` if a fencing token is requested.
    pub(crate) is_fenced: bool,
    /// `true` if the call enters the lock of its caller.
    pub(crate) is_reentrant: bool,
    /// `true` if a shared lock may use the token of another reader of this process. Its guard cannot be detached then.
    pub(crate) joins: bool,
    /// `true` if the order in which locks are acquired is checked.
    pub(crate) has_ordered_lock: bool,
    /// Call site: the attribute, or the call of the manager.
    pub(crate) place: Option<Place>,
    /// Name in statistics, in place of the template of an attribute.
    pub(crate) label: Option<&'static str>,
}

impl AcquireRequest {
    /// Creates a request for `what` with the manager's defaults.
    pub(crate) fn new(what: LockTarget) -> Self {
        Self {
            what,
            mode: Mode::Exclusive,
            permits: None,
            ttl: None,
            wait: None,
            hold: HoldOptions::default(),
            linger: None,
            windows: None,
            is_fenced: false,
            is_reentrant: false,
            joins: false,
            has_ordered_lock: true,
            place: None,
            label: None,
        }
    }

    /// Sets the place in the source, if it is not known yet.
    pub(crate) fn called_at(mut self, location: &'static Location<'static>) -> Self {
        self.place.get_or_insert(Place::Call(location));
        self
    }

    /// Returns the key, if the request is for one key.
    pub(crate) const fn key(&self) -> Option<&LockKey> {
        match &self.what {
            LockTarget::Key(key) => Some(key),
            LockTarget::Parts(_) => None,
        }
    }
}

impl fmt::Debug for AcquireRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, mode, ttl, wait, hold, linger, windows, .. } = self;
        let Self { permits, is_fenced, is_reentrant, has_ordered_lock, place, label, .. } = self;
        let mut request = f.debug_struct("LockRequest");
        match what {
            LockTarget::Key(key) => request.field("key", key),
            LockTarget::Parts(parts) => request.field("parts", parts),
        };
        request.field("ttl", ttl).field("wait", wait).field("hold", hold);
        if mode.is_shared() {
            request.field("mode", mode);
        }
        if let Some(permits) = permits {
            request.field("permits", permits);
        }
        if let Some(linger) = linger {
            request.field("linger", linger);
        }
        if let Some(windows) = windows {
            request.field("windows", windows);
        }
        if *is_fenced {
            request.field("is_fenced", is_fenced);
        }
        if *is_reentrant {
            request.field("is_reentrant", is_reentrant);
        }
        if !*has_ordered_lock {
            request.field("has_ordered_lock", has_ordered_lock);
        }
        if let Some(place) = place {
            request.field("place", place);
        }
        if let Some(label) = label {
            request.field("label", label);
        }
        request.finish()
    }
}
