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

/// # Cancel safety
/// Dropped at any await, it leaves nothing behind: the [`Ownership`] of the round sends its release.
pub(crate) async fn acquire(core: &Arc<Core>, request: LockRequest) -> Result<Ownership, LockError> {
    let key = request.key.below(&core.namespace);
    key.check()?;
    let ttl = core.policy.checked_ttl(request.ttl.unwrap_or(core.policy.default_ttl))?;
    let wait = request.wait.unwrap_or(core.policy.default_wait);
    let begun = core.clock.now();
    let mut now = begun;
    let mut retry = Retry::new(wait, ttl, core.policy.node_timeout(ttl));

    if core.is_closed() {
        return Err(LockError::Closed);
    }
    if core.is_starting() {
        core.started(wait).await;
        now = core.clock.now();
    }
    let mut outcome = Outcome::Silent;
    loop {
        let mut round = Ownership::claim(core, &key, ttl, now);
        let patience = retry.patience(now.since(begun));
        outcome = match round.decided(patience).await {
            Verdict::Reached => return Ok(round),
            Verdict::Contended => Outcome::Contended,
            // What the round before has seen stands, unless this one had the time to see something else.
            Verdict::OutOfReach | Verdict::Open if retry.is_cut(patience) => outcome,
            Verdict::OutOfReach | Verdict::Open => Outcome::Silent,
        };
        let waited = core.clock.now().since(begun);
        match retry.pause(outcome, waited, fastrand::f64()) {
            Some(pause) => {
                // The release must be on its way before the pause: votes that did not suffice are in everybody's way.
                drop(round);
                tokio::time::sleep(pause).await;
            }
            None if outcome == Outcome::Silent => return Err(round.failure()),
            None if wait == Wait::None => return Err(LockError::Contended { key }),
            None => return Err(LockError::TimedOut { key, waited }),
        }
        if core.is_closed() {
            return Err(LockError::Closed);
        }
        now = core.clock.now();
    }
}
