//! Schedule of the watchdog's checks.
//!
//! 1. A lock is first checked after an eighth of its ttl. Its renewal is due after a third, well after that.
//! 2. Each check returns the time of the next one: the renewal, or the end of the lease. A token that needs no renewal
//!    yet is checked after another eighth.
//! 3. A renewed lock is checked at its next renewal, under the assumption that all present voters grant the renewal. If
//!    the answers show otherwise, it is checked earlier: after an eighth, while an answer is late.
//! 4. When a lock is due, all locks that are due within a 64th of their ttl are renewed with it, because wake-ups cost
//!    most. No other lock is read: of many locks, hardly any is in a cache.
//! 5. A check stops when 512 locks are due. A crowd, such as all locks of a process that ask a node with a new
//!    connection, must delay neither this process nor the nodes. The rest is checked 5 ms later, the most urgent first.

use crate::client::acquisition::Acquisition;
use crate::protocol::candidate::{Candidate, Look, Phase};
use crate::protocol::timing::LOOKS_PER_TTL;
use crate::time::clock::Instant;
use std::sync::Arc;
use std::time::Duration;

/// Divisor of the ttl that gives the time by which a lock may be renewed early, together with others. Smaller: more
/// locks are renewed in one burst. Larger: more wake-ups.
const TOGETHER_PER_TTL: u32 = 64;
/// Number of due locks at which a check stops. Smaller: more wake-ups, and the last of many locks are renewed late.
/// Larger: a burst delays this process and the nodes.
const MANY: usize = 512;

/// Lock that is due.
pub(crate) struct Due {
    pub(crate) acquisition: Arc<Acquisition>,
    /// Time of its next check.
    pub(crate) next: Instant,
}

/// Time of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// Latest time.
    pub(crate) by: Instant,
    /// Earliest time, for a check together with others.
    pub(crate) from: Instant,
}

impl Planned {
    pub(crate) const fn at(at: Instant) -> Self {
        Self { by: at, from: at }
    }

    /// Plans a check at `at`, or a little earlier together with others, by the rule for locks of this `ttl`.
    pub(crate) fn together(at: Instant, ttl: Duration) -> Self {
        Self { by: at, from: at.before(early(ttl)) }
    }

    /// Plans the first check of a lock of this `ttl` that was acquired at `now`.
    pub(crate) fn first(ttl: Duration, now: Instant) -> Self {
        Self::within(ttl / LOOKS_PER_TTL, now)
    }

    /// Plans a check within that time from `now`, or a little earlier together with others.
    pub(crate) fn within(within: Duration, now: Instant) -> Self {
        Self::together(now.after(within), within * LOOKS_PER_TTL)
    }

    /// Returns the plan that satisfies both.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { by: self.by.min(other.by), from: self.from.min(other.from) }
    }
}

/// Returns `true` if so many locks are `due` that the others have to wait for the next check.
pub(crate) const fn is_batch_full(due: usize) -> bool {
    due >= MANY
}

/// Returns the time by which a lock of this `ttl` may be renewed early, together with others.
pub(crate) fn early(ttl: Duration) -> Duration {
    ttl / TOGETHER_PER_TTL
}

/// Checks one lock, and adds it to `due` if it is due. Returns the time of the next check.
pub(crate) fn look(acquisition: &Arc<Acquisition>, now: Instant, due: &mut Vec<Due>) -> Planned {
    let (is_due, planned) = acquisition.look(|candidate, is_watched| plan(candidate, is_watched, now));
    if is_due {
        due.push(Due { acquisition: Arc::clone(acquisition), next: planned.by });
    }
    planned
}

/// Returns `true` if the lock of `candidate` is due, and the time of its next check. `is_watched`: a caller watches for
/// the loss.
fn plan(candidate: &Candidate, is_watched: bool, now: Instant) -> (bool, Planned) {
    let ttl = candidate.terms().ttl;
    let soon = now.after(early(ttl));
    match candidate.look(now, soon, is_watched) {
        Look::Due => {
            let whole = candidate.check_time_after_renewal(now, soon).map(|at| Planned::together(at, ttl));
            (true, whole.unwrap_or_else(|| Planned::at(now.after(candidate.check_within(now)))))
        }
        Look::DueAt(at) => (false, Planned::together(at, ttl)),
        Look::Later(at) => (false, Planned::at(at)),
        // Check again later: the acquisition may have succeeded by that time.
        Look::Nothing => (false, Planned::first(ttl, now)),
    }
}

/// Outcome of the answers to a renewal so far.
pub(crate) struct Heard {
    /// Set if answers are outstanding.
    pub(crate) is_awaited: bool,
    /// Time after the renewal for which answers are examined.
    pub(crate) matter_for: Duration,
    /// Set if the leases are as long as if all nodes had granted the renewal.
    pub(crate) is_extended: bool,
    /// Time of the next check, according to the answers so far.
    pub(crate) next: Option<Instant>,
}

/// Returns the outcome of a renewal of `candidate` at `asked`, from the answers by `now`.
pub(crate) fn heard(candidate: &Candidate, asked: Instant, now: Instant) -> Heard {
    let after_a_pause = now.after(candidate.check_within(now));
    let is_awaited = candidate.phase() == Phase::Holding && candidate.is_awaited();
    Heard {
        is_awaited,
        matter_for: candidate.answers_matter_for(candidate.terms().node_timeout),
        // A process that breaks a lock waits for every answer, and so does a missing vote.
        is_extended: candidate.is_extended(asked) && !candidate.is_revoked() && !candidate.lacks_votes(),
        next: match candidate.look(now, now, false) {
            // A late node may have answered by that time.
            Look::DueAt(at) | Look::Later(at) if is_awaited => Some(at.min(after_a_pause)),
            Look::DueAt(at) | Look::Later(at) => Some(at),
            Look::Due => candidate.held_until().map(|end| end.min(after_a_pause)),
            Look::Nothing => None,
        },
    }
}
