//! Missing votes of permits: the permit's process acquires the admission lock again, as if it were another process, and asks
//! the nodes that have no vote for the permit. The body continues meanwhile.
//!
//! It waits in the queues of the admission lock for as long as its permit lasts. Earlier calls in these queues want permits
//! themselves, so the wait can be long.

use super::{LocalOwner, LocalQueue};
use crate::client::acquisition::Acquisition;
use crate::client::timers;
use crate::protocol::candidate::{Waited, Wanted, turn};
use std::sync::Arc;
use std::time::Duration;

/// Permit whose process waits for the admission lock or owns it again. On drop, that ends.
struct Returning(Arc<Acquisition>);

impl Drop for Returning {
    fn drop(&mut self) {
        self.0.clear_returning();
    }
}

impl LocalQueue {
    /// Starts to win back the missing votes of `permit`, unless that is already in progress.
    pub(super) fn return_for_votes(self: Arc<Self>, permit: &Arc<Acquisition>) {
        if permit.comes_back() {
            let permit = Returning(Arc::clone(permit));
            if let Some(runtime) = timers::runtime() {
                runtime.spawn(async move { self.reacquire_votes(&permit.0).await });
            }
        }
    }

    async fn reacquire_votes(self: Arc<Self>, permit: &Acquisition) {
        let wanted = Wanted { ttl: turn(permit.ttl()), is_fenced: false, is_kept: false, linger: Duration::ZERO };
        let admission = self.enter_with(Arc::new(permit.way_back()), wanted, self.shared.clock.now());
        if let Some(Some(admission)) = permit.while_held(stand_in(admission, wanted)).await {
            permit.ask_for_votes(admission.acquisition()).await;
        }
    }
}

/// Waits until the admission lock belongs to this token. Returns `None` if that is impossible: the manager closes, or too
/// few nodes answer.
async fn stand_in(mut admission: LocalOwner, wanted: Wanted) -> Option<LocalOwner> {
    loop {
        admission.acquisition().resume(wanted);
        match admission.acquisition().wait(None).await {
            Waited::Held => return Some(admission),
            Waited::LostMajority => admission.change(admission.acquisition().again()).ok()?,
            Waited::Superseded | Waited::Closed | Waited::TimedOut | Waited::Silent => return None,
        }
    }
}
