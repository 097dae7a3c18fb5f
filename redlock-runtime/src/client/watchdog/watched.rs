//! What the watchdog knows of whoever keeps the locks.

use super::schedule::Due;
use crate::client::acquisition::Acquisition;
use crate::protocol::rules::Rules;
use crate::time::clock::Instant;
use std::sync::Arc;

/// What a watchdog looks after.
pub(crate) trait Watched: Send + Sync {
    /// Puts what is due by `now` to `due`, and with it what is due soon: so that renewals go out together. Returns when to look
    /// again, if anything is held or wanted.
    fn look(&self, now: Instant, due: &mut Vec<Due>) -> Option<Instant>;

    /// The lock of `acquisition` is to be looked at by then: its renewal was not what it was expected to be. Before a look, for
    /// which nobody has to be woken.
    fn look_by(&self, acquisition: &Acquisition, at: Instant);

    /// Which rules apply.
    fn rules(&self) -> Rules;

    /// What the nodes say to the renewal of one of its permits is looked for no longer.
    fn answered(self: Arc<Self>, permit: &Arc<Acquisition>);
}
