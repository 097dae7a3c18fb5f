//! What one call has of a lock, as the calls in its body see it.

use crate::client::acquisition::Acquisition;
use crate::client::shared::Shared;
use crate::lock::LockKey;
use crate::request::Place;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What one call has of a lock, from when it is obtained to when it is given back, left to another worker or lost. The token
/// may go on after that, with another call.
pub(crate) struct Tenure {
    acquisition: Arc<Acquisition>,
    place: Place,
    has_ended: AtomicBool,
}

impl Tenure {
    pub(super) const fn new(acquisition: Arc<Acquisition>, place: Place) -> Self {
        Self { acquisition, place, has_ended: AtomicBool::new(false) }
    }

    pub(crate) fn key(&self) -> &LockKey {
        self.acquisition.key()
    }

    /// Where the lock was asked for.
    pub(crate) const fn place(&self) -> Place {
        self.place
    }

    /// What all locks of its manager share.
    pub(crate) fn shared(&self) -> &Shared {
        self.acquisition.shared()
    }

    /// The call has the lock no more.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Whether the call has the lock, and can prove it.
    pub(crate) fn is_held(&self) -> bool {
        // In this order: what is proven of the token is the call's only if the call has it still.
        !self.acquisition.validity().is_zero() && !self.has_ended.load(Ordering::Acquire)
    }
}
