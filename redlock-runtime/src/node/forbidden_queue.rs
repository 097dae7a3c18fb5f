//! Detection of queues that the user of a server may not use.
//!
//! Without a namespace, the names of locks are not known before they are used. A user with `~order:*` and without `~{order:*` can run the
//! plain `SET` that takes `order:7`, and cannot run the commands that use its queue.
//!
//! 1. If an extension or a release is refused because of a key, it is sent once more without the queue. The lock stays held, and nothing is
//!    left at its release.
//! 2. From then on, each `SET` at this server also names the queue, so that the server refuses it before the lock is taken.
//! 3. If the user may use the queue of the same lock later, the `SET` is plain again.

use crate::time::clock::Instant;
use crate::time::due_time::DueTime;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time between two questions whether the user may use the queue now. Too small: the server logs each refused question. Too large: each
/// `SET` is a script for longer after the permission was granted.
const ASKED_EVERY: Duration = Duration::from_secs(5);

/// Last lock whose queue the user of a server could not use.
#[derive(Default)]
pub(crate) struct ForbiddenQueue {
    is_known: AtomicBool,
    name: Mutex<Option<Box<str>>>,
    question_due: DueTime,
}

impl ForbiddenQueue {
    /// Returns `true` if there is such a lock.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Returns `true` if the server is to be asked whether the user may use the queue now.
    pub(crate) fn is_question_due(&self, now: Instant) -> bool {
        self.question_due.is_now(now, ASKED_EVERY)
    }

    /// Returns the name of the lock.
    pub(crate) fn name(&self) -> Option<Box<str>> {
        self.known().clone()
    }

    /// Records that the user may use the lock with this `name`, and not its queue.
    pub(crate) fn record(&self, name: &str) {
        *self.known() = Some(name.into());
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// Records that the user may use the queue.
    pub(crate) fn clear(&self) {
        if self.is_known() {
            *self.known() = None;
            self.is_known.store(false, Ordering::Relaxed);
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<Box<str>>> {
        // No code that can panic runs under this mutex.
        self.name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ForbiddenQueue {
    /// Shows no key: keys may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForbiddenQueue").field("is_known", &self.is_known).finish_non_exhaustive()
    }
}
