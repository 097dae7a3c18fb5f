//! When the watchdog looks at which locks.
//!
//! 1. A lock that was taken is looked at after an eighth of its ttl: well before a third of it is over, when it is due.
//! 2. A look says when the next one is: when the lock is due, or when its lease ends. What has nothing to look after yet is
//!    looked at after another eighth.
//! 3. What is asked for new leases is looked at when they are due again, should those who have voted grant them. The watchdog
//!    finds out by the answers that one has not, and looks earlier: after an eighth, while an answer is late.
//! 4. When any lock is due, those that are due within a 64th of their ttl are renewed with it: what costs most is to wake up.
//!    No other lock is touched: of many, hardly any is in a cache.
//! 5. Unless 512 are due already: neither this process nor the nodes should be held up by a crowd, such as all the locks of
//!    a process that ask a node to which there is a new connection. The rest is looked at 5 ms later, the most urgent first.

use crate::client::acquisition::Acquisition;
use crate::protocol::candidate::{Candidate, Look, Phase};
use crate::time::clock::Instant;
use std::sync::Arc;
use std::time::Duration;

/// A lock that is taken now is looked at after this part of its ttl. At 3 or smaller, it could be renewed late; larger, more
/// looks that find nothing due.
const LOOKS_PER_TTL: u32 = 8;
/// What is due within this part of its ttl is renewed together with what is due now. Smaller, more wake-ups; larger, more
/// locks are renewed in one burst.
const TOGETHER_PER_TTL: u32 = 64;
/// Unless so many are due already. Smaller, more wake-ups, and the last of many locks are renewed late; larger, a burst that
/// holds up this process and the nodes.
const MANY: usize = 512;

/// A lock that is due.
pub(crate) struct Due {
    pub(crate) acquisition: Arc<Acquisition>,
    /// When it is looked at the next time.
    pub(crate) next: Instant,
}

/// When to look at something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// At the latest.
    pub(crate) by: Instant,
    /// Not before, although others are looked at.
    pub(crate) from: Instant,
}

impl Planned {
    pub(crate) const fn at(at: Instant) -> Self {
        Self { by: at, from: at }
    }

    /// At `at`, or a little before together with others, as a lock of this `ttl` is renewed.
    pub(crate) fn together(at: Instant, ttl: Duration) -> Self {
        Self { by: at, from: at.before(early(ttl)) }
    }

    /// When a lock of this `ttl` is looked at that was taken at `now`.
    pub(crate) fn first(ttl: Duration, now: Instant) -> Self {
        Self::together(now.after(pause(ttl)), ttl)
    }

    /// When to look at either.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { by: self.by.min(other.by), from: self.from.min(other.from) }
    }
}

/// How long after it was taken, or looked at, a lock of this `ttl` is looked at.
fn pause(ttl: Duration) -> Duration {
    ttl / LOOKS_PER_TTL
}

/// Whether so many locks are `due` already that the rest has to wait for the next look.
pub(crate) const fn is_crowd(due: usize) -> bool {
    due >= MANY
}

/// For how long before it is due a lock of this `ttl` may be renewed, together with others.
pub(crate) fn early(ttl: Duration) -> Duration {
    ttl / TOGETHER_PER_TTL
}

/// Looks at one lock, and puts it to those that are `due` if it is. Returns when to look again.
pub(crate) fn look(acquisition: &Arc<Acquisition>, now: Instant, due: &mut Vec<Due>) -> Planned {
    let (is_due, planned) = acquisition.look(|candidate, is_watched| plan(candidate, is_watched, now));
    if is_due {
        due.push(Due { acquisition: Arc::clone(acquisition), next: planned.by });
    }
    planned
}

/// Whether the lock of `candidate` is due, and when to look at it the next time. `is_watched`: somebody wants to know when it is
/// lost.
fn plan(candidate: &Candidate, is_watched: bool, now: Instant) -> (bool, Planned) {
    let ttl = candidate.terms().ttl;
    let soon = now.after(early(ttl));
    match candidate.look(now, soon, is_watched) {
        Look::Due => {
            let whole = candidate.look_after_renewal(now, soon).map(|at| Planned::together(at, ttl));
            (true, whole.unwrap_or_else(|| Planned::at(now.after(pause(candidate.counted_for(now))))))
        }
        Look::DueAt(at) => (false, Planned::together(at, ttl)),
        Look::Later(at) => (false, Planned::at(at)),
        // It may be held by then.
        Look::Nothing => (false, Planned::first(ttl, now)),
    }
}

/// What the answers to a renewal have brought so far.
pub(crate) struct Heard {
    /// Whether some are still to come.
    pub(crate) is_awaited: bool,
    /// For how long after the renewal to look for them.
    pub(crate) matter_for: Duration,
    /// Whether the leases are as long as if all nodes had granted theirs.
    pub(crate) is_extended: bool,
    /// When to look at the lock as things are.
    pub(crate) next: Option<Instant>,
}

/// What the nodes have said by `now` to `candidate`, which has `asked` them then.
pub(crate) fn heard(candidate: &Candidate, asked: Instant, now: Instant) -> Heard {
    let after_a_pause = now.after(pause(candidate.counted_for(now)));
    let is_awaited = candidate.phase() == Phase::Holding && candidate.is_awaited();
    Heard {
        is_awaited,
        matter_for: candidate.answers_matter_for(candidate.terms().node_timeout),
        // Whoever breaks a lock waits for every answer, and so does a vote that is lacking.
        is_extended: candidate.is_extended(asked) && !candidate.is_revoked() && !candidate.lacks_votes(),
        next: match candidate.look(now, now, false) {
            // A node that is late may have something to say by then.
            Look::DueAt(at) | Look::Later(at) if is_awaited => Some(at.min(after_a_pause)),
            Look::DueAt(at) | Look::Later(at) => Some(at),
            Look::Due => candidate.held_until().map(|end| end.min(after_a_pause)),
            Look::Nothing => None,
        },
    }
}
