//! Acquiring a lock: rounds over the nodes until one succeeds or the caller's wait is over.
//!
//! Source: "Distributed Locks with Redis", the Redis documentation. Where that text asks one node after the other, all
//! are asked at once, and a round is decided as soon as a majority has answered.

mod retry;

use self::retry::{Outcome, Retry};
use crate::core::Core;
use crate::error::LockError;
use crate::options::{LockRequest, Wait};
use crate::ownership::Ownership;
use crate::quorum::Verdict;
use std::sync::Arc;
use std::time::Duration;

/// # Cancel safety
/// Dropped at any await, it leaves nothing behind: the [`Ownership`] of the round sends its release.
pub(crate) async fn acquire(core: &Arc<Core>, request: LockRequest) -> Result<Box<Ownership>, LockError> {
    let key = request.key.below(&core.namespace);
    key.check()?;
    let ttl = core.policy.checked_ttl(request.ttl.unwrap_or(core.policy.default_ttl))?;
    let wait = request.wait.unwrap_or(core.policy.default_wait);
    let begun = core.clock.now();
    let elapsed = || core.clock.now().since(begun);
    let mut retry = Retry::new(wait, ttl, core.policy.node_timeout(ttl));

    if core.is_closed() {
        return Err(LockError::Closed);
    }
    core.started(wait).await;
    let mut is_contended = false;
    loop {
        let mut round = Ownership::claim(core, &key, ttl);
        let patience = retry.patience(elapsed());
        is_contended = match round.decided(patience).await {
            Verdict::Reached => return Ok(round),
            Verdict::Contended => true,
            // What the round before has seen stands, unless this one had the time to see something else.
            Verdict::OutOfReach | Verdict::Open => is_contended && retry.is_cut(patience),
        };
        let (outcome, error) = if is_contended {
            (Outcome::Contended, contended(wait, round.key().clone(), elapsed()))
        } else {
            (Outcome::Silent, round.failure())
        };
        // Sent before the pause: votes that did not suffice must not be in anybody's way.
        drop(round);
        match retry.pause(outcome, elapsed(), fastrand::f64()) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Err(error),
        }
        if core.is_closed() {
            return Err(LockError::Closed);
        }
    }
}

fn contended(wait: Wait, key: crate::key::LockKey, waited: Duration) -> LockError {
    match wait {
        Wait::None => LockError::Contended { key },
        Wait::For(_) | Wait::Forever => LockError::TimedOut { key, waited },
    }
}
