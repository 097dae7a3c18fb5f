//! Winning votes back for permits: whoever has one stands in the turnstile once more, as if it were another process, and asks the nodes
//! that have no vote for it. The body goes on meanwhile.
//!
//! It waits in the queues of the turnstile for as long as its permit lasts: those who came before want permits, and each of them takes
//! as long as it takes.

use super::{LocalQueue, LocalTurn};
use crate::client::acquisition::Acquisition;
use crate::client::timers;
use crate::protocol::candidate::{Waited, Wanted, turn};
use std::sync::Arc;
use std::time::Duration;

/// A permit for which somebody stands in the turnstile. Dropped, nobody does.
struct Returning(Arc<Acquisition>);

impl Drop for Returning {
    fn drop(&mut self) {
        self.0.has_come_back();
    }
}

impl LocalQueue {
    /// Sees to it that votes are won back which `permit` lacks, if nobody does so yet.
    pub(super) fn return_for_votes(self: Arc<Self>, permit: &Arc<Acquisition>) {
        if permit.comes_back() {
            let permit = Returning(Arc::clone(permit));
            if let Some(runtime) = timers::runtime() {
                runtime.spawn(async move { self.win_votes_back(&permit.0).await });
            }
        }
    }

    async fn win_votes_back(self: Arc<Self>, permit: &Acquisition) {
        let wanted = Wanted { ttl: turn(permit.ttl()), is_fenced: false, is_kept: false, linger: Duration::ZERO };
        let turnstile = self.enter_with(Arc::new(permit.way_back()), wanted, self.shared.clock.now());
        if let Some(Some(turnstile)) = permit.while_held(stand_in(turnstile, wanted)).await {
            permit.ask_for_votes(turnstile.acquisition()).await;
        }
    }
}

/// Waits until the turnstile is its own. `None` when that cannot be: the manager closes, or too few nodes answer.
async fn stand_in(mut turnstile: LocalTurn, wanted: Wanted) -> Option<LocalTurn> {
    loop {
        turnstile.acquisition().take_up(wanted);
        match turnstile.acquisition().wait(None).await {
            Waited::Held => return Some(turnstile),
            Waited::LostMajority => turnstile.change(turnstile.acquisition().again()).ok()?,
            Waited::Superseded | Waited::Closed | Waited::TimedOut | Waited::Silent => return None,
        }
    }
}
