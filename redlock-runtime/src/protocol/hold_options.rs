//! Limits for the time that a call holds a lock.

use crate::error::LockError;
use crate::protocol::timing::MAX_TTL;
use std::time::Duration;

/// Limits for the time that a call holds a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldOptions {
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) min_hold: Option<Duration>,
    /// Time for which the key of a window stays taken, like that of `min_hold`. Unlike `min_hold`, it may be withdrawn.
    pub(crate) window_rest: Option<Duration>,
}

impl HoldOptions {
    /// Options between the call that held the lock before and the next call.
    pub(crate) const UNTIL_BEGUN: Self = Self { renew: false, max_hold: None, min_hold: None, window_rest: None };
}

impl Default for HoldOptions {
    fn default() -> Self {
        Self { renew: true, ..Self::UNTIL_BEGUN }
    }
}

impl HoldOptions {
    /// # Errors
    /// [`LockError::Configuration`] for options that contradict each other or the `ttl`.
    pub(crate) fn check(&self, ttl: Duration) -> Result<(), LockError> {
        match (self.max_hold, self.min_hold) {
            (Some(Duration::ZERO), _) => Err(LockError::configuration(
                "a max_hold of zero leaves no time for the body: leave it out, or raise \
                                              it",
            )),
            (Some(longest), _) if !self.renew && longest > ttl => Err(LockError::configuration(format!(
                "a max_hold of {longest:?} has no effect without renewal: the lock ends with its ttl of {ttl:?}"
            ))),
            (_, Some(least)) if least > MAX_TTL => Err(LockError::configuration(format!(
                "a min_hold of {least:?} is too long: at most 30 days are allowed"
            ))),
            _ => Ok(()),
        }
    }
}
