//! Acquiring a lock: rounds over the nodes until one succeeds or the caller's wait is over.
//!
//! Source: "Distributed Locks with Redis", the Redis documentation. Where that text asks one node after the other, all
//! are asked at once, and a round is decided as soon as a majority has answered.

mod retry;

use self::retry::{Outcome, Retry};
use crate::error::LockError;
use crate::key::LockKey;
use crate::options::{LockRequest, Wait};
use crate::ownership::Ownership;
use crate::quorum::Verdict;
use crate::shared::Core;
use std::sync::Arc;
use std::time::Duration;

/// # Cancel safety
/// Dropped at any await, it leaves nothing behind: the [`Ownership`] of the round sends its release.
pub(crate) async fn acquire(core: &Arc<Core>, request: LockRequest) -> Result<Ownership, LockError> {
    let Wanted { key, ttl, wait } = Wanted::checked(core, request)?;
    let begun = core.clock.now();
    let mut now = begun;
    if core.is_starting() {
        core.started(wait).await;
        now = core.clock.now();
    }
    let mut retry = Retry::new(wait, ttl, core.policy.node_timeout(ttl));
    let mut outcome = Outcome::Silent;
    loop {
        if core.is_closed() {
            return Err(LockError::Closed);
        }
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
        let Some(pause) = retry.pause(outcome, waited, fastrand::f64()) else {
            return Err(failure(outcome, &round, wait, waited));
        };
        // The release must be on its way before the pause: votes that did not suffice are in everybody's way.
        drop(round);
        tokio::time::sleep(pause).await;
        now = core.clock.now();
    }
}

fn failure(outcome: Outcome, round: &Ownership, wait: Wait, waited: Duration) -> LockError {
    let key = round.key().clone();
    match (outcome, wait) {
        (Outcome::Silent, _) => round.failure(),
        (Outcome::Contended, Wait::None) => LockError::Contended { key },
        (Outcome::Contended, Wait::For(_) | Wait::Forever) => LockError::TimedOut { key, waited },
    }
}

/// A request with everything decided.
struct Wanted {
    key: LockKey,
    ttl: Duration,
    wait: Wait,
}

impl Wanted {
    fn checked(core: &Core, request: LockRequest) -> Result<Self, LockError> {
        let key = request.key.below(&core.namespace);
        key.check()?;
        let ttl = core.policy.checked_ttl(request.ttl.unwrap_or(core.policy.default_ttl))?;
        let wait = match request.wait.unwrap_or(core.policy.default_wait) {
            Wait::For(Duration::ZERO) => Wait::None,
            wait => wait,
        };
        Ok(Self { key, ttl, wait })
    }
}
