//! Whether what a member hands out proves that it is still there.
//!
//! What one server says comes in one order, so that a claim that is announced has not been given back by an answer before. While
//! slots move, a token speaks with several members about one lock: the announcement of a claim may be on its way from the member
//! that had the slot, and the token may have given the lock back meanwhile at the one that has it now.
//!
//! 1. A token speaks with another member only behind a redirection, or by another map. Both are noted here before, and a redirection
//!    once more when the command was executed. Others end its lock there only by breaking it, and its manager is told (`revoked`),
//!    which is noted as well.
//! 2. A claim that a message proves is counted for [`CLAIM`] at most from when it began, and one that is over at another member
//!    began before that. So nothing is proven for so long after any of these: then every such claim is over.
//! 3. Only the member that has the slot by the map proves anything: another one may have lost it in a failover and not know yet.
//!    Nor does one without channels of its own.
//!
//! What is left is a manager that learns of a failover late, while the old master goes on, as with its grants: see
//! `docs/protocol.md`.

use crate::protocol::timing::CLAIM;
use crate::time::clock::{Clock, Instant};
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub(super) struct Settled {
    clock: Clock,
    /// Until when nothing is proven, in milliseconds of the clock.
    from: AtomicU64,
}

impl Settled {
    pub(super) const fn new(clock: Clock) -> Self {
        Self { clock, from: AtomicU64::new(0) }
    }

    /// Tokens are about to speak with another member than before.
    pub(super) fn disturb(&self) {
        // Rounded up.
        let from = self.clock.now().after(CLAIM).millis().saturating_add(1);
        self.from.fetch_max(from, Ordering::AcqRel);
    }

    /// Whether every claim is over that may have ended at another member than the one that has announced it.
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
    async fn nothing_is_proven_for_as_long_as_a_claim_lasts() {
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
