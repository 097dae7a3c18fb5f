//! Interface of the watchdog to the owner of the locks.

use super::schedule::Due;
use crate::client::acquisition::Acquisition;
use crate::protocol::rules::Rules;
use crate::time::clock::Instant;
use std::sync::Arc;

/// Owner of the locks that a watchdog renews.
pub(crate) trait Watched: Send + Sync {
    /// Adds the locks that are due by `now` to `due`, together with those due soon, so that renewals are sent together.
    /// Returns the time of the next check, if any lock is held or wanted.
    fn look(&self, now: Instant, due: &mut Vec<Due>) -> Option<Instant>;

    /// Schedules a check of the lock of `acquisition`, because its renewal had an unexpected outcome. It is called
    /// before a regular check, so it wakes no task.
    fn schedule_check(&self, acquisition: &Acquisition, at: Instant);

    /// Returns the rules that apply.
    fn rules(&self) -> Rules;

    /// Ends the examination of the answers to the renewal of a permit.
    fn answered(self: Arc<Self>, permit: &Arc<Acquisition>);
}
