//! When the watchdog looks at which locks.
//!
//! 1. A lock that was taken is looked at after an eighth of its ttl: well before a third of it is over, when it is due.
//! 2. A look says when the next one is: when the lock is due, or when its lease ends. What has nothing to look after yet, or
//!    was just renewed, is looked at after another eighth.
//! 3. Locks that are to be looked at within 100 ms are looked at together, and what is due within a thirty-second of its ttl
//!    is renewed then: what costs most is to wake up. No other lock is touched: of many, hardly any is in a cache.
//! 4. Unless 256 are due already: neither this process nor the nodes should be held up by a crowd, such as all the locks of
//!    a process that ask a node to which there is a new connection. The rest is looked at 5 ms later, the most urgent first.

use crate::client::acquisition::Acquisition;
use crate::protocol::candidate::Look;
use crate::time::clock::Instant;
use std::sync::Arc;
use std::time::Duration;

/// A lock that is taken now is looked at after this part of its ttl. At 3 or smaller, it could be renewed late; larger, more
/// looks that find nothing due.
const LOOKS_PER_TTL: u32 = 8;
/// What is due within this part of its ttl is renewed together with what is due now. Smaller, more wake-ups; larger, more
/// renewals.
const TOGETHER_PER_TTL: u32 = 32;
/// Locks that are to be looked at within this time are looked at together. Smaller, more wake-ups; larger, more
/// locks that are looked at for nothing.
const SOON: Duration = Duration::from_millis(100);
/// Unless so many are due already. Smaller, more wake-ups, and the last of many locks are renewed late; larger, a burst that
/// holds up this process and the nodes.
const MANY: usize = 256;

/// What the watchdog finds.
#[derive(Default)]
pub(crate) struct Looked {
    pub(crate) due: Vec<Arc<Acquisition>>,
    /// When to look again, if anything is held or wanted.
    pub(crate) next: Option<Instant>,
}

/// How long after it was taken, or looked at, a lock of this `ttl` is looked at.
pub(crate) fn pause(ttl: Duration) -> Duration {
    ttl / LOOKS_PER_TTL
}

/// By when a lock, or a part of the line, must be due to be looked at now.
pub(crate) fn due_by(now: Instant) -> Instant {
    now.after(SOON)
}

/// Whether so many locks are `due` already that the rest has to wait for the next look.
pub(crate) const fn is_crowd(due: usize) -> bool {
    due >= MANY
}

/// What is due by then, of a lock of this `ttl`, is done now.
pub(crate) fn soon(ttl: Duration, now: Instant) -> Instant {
    now.after(ttl / TOGETHER_PER_TTL)
}

/// Looks at one lock, and puts it to those that are `due` if it is. Returns when to look again.
pub(crate) fn look(acquisition: &Arc<Acquisition>, now: Instant, due: &mut Vec<Arc<Acquisition>>) -> Instant {
    let ttl = acquisition.ttl();
    match acquisition.look(now, soon(ttl, now)) {
        Look::Later(at) => at,
        Look::Due => {
            due.push(Arc::clone(acquisition));
            now.after(pause(acquisition.counted_for(now)))
        }
        // It may be held by then.
        Look::Nothing => now.after(pause(ttl)),
    }
}
