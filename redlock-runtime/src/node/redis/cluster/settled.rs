//! Decides if a hand-off that a member announces proves a hold that still exists.
//!
//! All messages of one server come in one order. A claim that it announces can therefore not have been released by an earlier reply. While
//! slots move, a token exchanges messages with several members about one lock. The announcement of a claim may still be on its way from the
//! previous member of the slot. The token may already have released the lock at the new member.
//!
//! 1. A token contacts another member only after a redirection, or with a new map. Both are recorded here in advance. A redirection is
//!    recorded once more when the command was executed. Other clients end the lock there only by breaking it. The manager is then notified
//!    (`revoked`), and this is recorded as well.
//! 2. A claim that a message proves lasts at most [`CLAIM`] from its start. A claim that has ended at another member began before that end.
//!    Nothing is therefore proven for [`CLAIM`] after any of these events: every such claim is over then.
//! 3. Only the member that has the slot in the map proves anything. Another one may have lost the slot in a failover without knowing. A
//!    member without separate channels proves nothing, either.
//!
//! One case remains: a manager learns of a failover late, while the old master continues to grant locks. See `docs/protocol.md`.

use crate::protocol::timing::CLAIM;
use crate::time::clock::{Clock, Instant};
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub(super) struct Settled {
    clock: Clock,
    /// The time until which nothing is proven, in milliseconds of the clock.
    from: AtomicU64,
}

impl Settled {
    pub(super) const fn new(clock: Clock) -> Self {
        Self { clock, from: AtomicU64::new(0) }
    }

    /// Records that tokens are about to contact another member than before.
    pub(super) fn disturb(&self) {
        // Rounded up.
        let from = self.clock.now().after(CLAIM).millis().saturating_add(1);
        self.from.fetch_max(from, Ordering::AcqRel);
    }

    /// Returns `true` if all claims are over that may have ended at another member than the announcing one.
    pub(super) fn is_settled(&self) -> bool {
        let now: Instant = self.clock.now();
        now.millis() >= self.from.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn claims_are_not_proven_until_a_claim_length_after_a_slot_move() {
        let settled = Settled::new(Clock::tokio());
        assert!(settled.is_settled(), "no slot has moved");
        for _ in 0..2 {
            settled.disturb();
            advance(CLAIM).await;
            assert!(!settled.is_settled(), "a claim that began just before is not over");
        }
        advance(Duration::from_millis(1)).await;
        assert!(settled.is_settled());
    }
}
