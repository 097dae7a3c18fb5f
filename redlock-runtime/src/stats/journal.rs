//! Log of calls, for tests that check more than counters.

use crate::error::{LockError, LossCause};
use crate::lock::parts::Parts;
use crate::lock::{LockKey, Mode, OwnerToken};
use crate::protocol::fencing_token::FencingToken;
use crate::time::clock::Clock;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Event of a call in a [`Log`](crate::testing::Log).
///
/// Each entry is about one call, not about its commands. Several readers of one process may share the votes that the first of them
/// won; each of them has its entries. The same is true for a nested call that [enters](LogEvent::Entered) the lock of its caller.
///
/// `Display` writes a line without tokens, so that two runs of one seed can be compared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogEntry {
    /// Time of the event, since the servers were created.
    pub at: Duration,
    /// Number of the manager, in the order of creation: the first one is 0.
    pub manager: usize,
    /// Requested key, with the namespace of its manager. For [several](crate::LockRequest::all) keys or paths, their common name,
    /// as in `"account:1" + "account:2"`.
    pub key: LockKey,
    /// Key as it is written in the attribute, or the [`label`](crate::LockRequest::label) of the request.
    pub template: Option<&'static str>,
    /// Mode of the lock.
    pub mode: Mode,
    /// Event of the call.
    pub event: LogEvent,
    /// Every requested name, with its ancestors.
    pub(crate) parts: Parts,
}

/// Kind of event in a [`LogEntry`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LogEvent {
    /// The call acquired its lock, exclusively or together with others.
    #[non_exhaustive]
    Acquired {
        /// Lease of the lock without a renewal.
        ttl: Duration,
        /// Fencing token, if the call requested one.
        fencing_token: Option<FencingToken>,
        /// Number of [permits](crate::LockRequest::permits) of the key, if the call requested a permit.
        permits: Option<u32>,
    },
    /// A [reentrant](crate::LockRequest::reentrant) call entered the lock of its caller, until it has [`Left`](Self::Left).
    #[non_exhaustive]
    Entered {},
    /// The call lost its lock. Its body may still be running until [`Ended`](Self::Ended).
    #[non_exhaustive]
    Lost {
        /// Cause of the loss.
        cause: LossCause,
    },
    /// The guard was [downgraded](crate::LockGuard::downgrade): the call shares its lock from now on.
    #[non_exhaustive]
    Downgraded {},
    /// The call ended: its body has ended or was dropped, or its guard was released, dropped or detached.
    #[non_exhaustive]
    Ended {},
    /// A call that had [`Entered`](Self::Entered) the lock of its caller ended. The caller still holds the lock, unless it was
    /// lost.
    #[non_exhaustive]
    Left {},
    /// The call was dropped while it waited for its lock. The entry of a call for a [window](crate::LockRequest::once_per) has the
    /// requested key.
    #[non_exhaustive]
    Cancelled {},
    /// The call failed.
    #[non_exhaustive]
    Failed {
        /// Error that the call returned. It names the key of the window if the request has [`once_per`](crate::LockRequest::once_per).
        error: LockError,
    },
}

impl fmt::Display for LogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.3} s  manager {}  {} ", self.at.as_secs_f64(), self.manager, self.key.quoted())?;
        let is_shared = if self.mode == Mode::Shared { ", shared" } else { "" };
        match &self.event {
            LogEvent::Acquired { ttl, permits: Some(permits), .. } => {
                write!(f, "acquired for {ttl:?}, one of {permits} permits")
            }
            LogEvent::Acquired { ttl, fencing_token: None, .. } => write!(f, "acquired for {ttl:?}{is_shared}"),
            LogEvent::Acquired { ttl, fencing_token: Some(token), .. } => {
                write!(f, "acquired for {ttl:?}{is_shared}, fencing token {token}")
            }
            LogEvent::Entered {} => f.write_str("entered the lock of its caller"),
            LogEvent::Lost { cause } => write!(f, "lost: {cause}"),
            LogEvent::Downgraded {} => f.write_str("downgraded"),
            LogEvent::Ended {} => f.write_str("ended"),
            LogEvent::Left {} => f.write_str("left the lock of its caller"),
            LogEvent::Cancelled {} => f.write_str("cancelled"),
            LogEvent::Failed { error } => write!(f, "failed: {error}"),
        }
    }
}

/// Log of all calls to one set of servers.
#[derive(Debug)]
pub(crate) struct Journal {
    clock: Clock,
    entries: Mutex<Vec<LogEntry>>,
}

impl Journal {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, entries: Mutex::default() }
    }

    /// Returns all entries.
    pub(crate) fn entries(&self) -> MutexGuard<'_, Vec<LogEntry>> {
        // No code that can panic runs under this mutex.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Log of one manager.
#[derive(Clone, Debug)]
pub(crate) struct CallLog {
    pub(crate) journal: Arc<Journal>,
    pub(crate) manager: usize,
}

impl CallLog {
    pub(crate) fn note(&self, (parts, mode): (Parts, Mode), template: Option<&'static str>, event: LogEvent) {
        let (at, manager, key) = (self.journal.clock.now().since_origin(), self.manager, parts.key());
        self.journal.entries().push(LogEntry { at, manager, key, template, mode, event, parts });
    }
}

/// Log of one call.
#[derive(Debug)]
pub(crate) struct CallEntry {
    pub(crate) notebook: CallLog,
    pub(crate) parts: Parts,
    pub(crate) mode: Mode,
    pub(crate) template: Option<&'static str>,
}

impl CallEntry {
    pub(crate) fn note(&self, event: LogEvent) {
        self.notebook.note((self.parts.clone(), self.mode), self.template, event);
    }
}

/// Calls of one manager that hold their locks, by the token and the turn in which they hold it.
#[derive(Debug, Default)]
pub(crate) struct Stays(Mutex<HashMap<(OwnerToken, u32), CallEntry>>);

impl Stays {
    /// Records that a call holds the lock in that `turn` of `token`.
    pub(crate) fn begin(&self, token: OwnerToken, turn: u32, page: CallEntry) {
        self.all().insert((token, turn), page);
    }

    /// Records that the call shares its lock from now on.
    pub(crate) fn lower(&self, token: OwnerToken, turn: u32) {
        if let Some(page) = self.all().get_mut(&(token, turn)) {
            page.parts = page.parts.lowered();
            page.mode = Mode::Shared;
            page.note(LogEvent::Downgraded {});
        }
    }

    /// Records the end of the call.
    pub(crate) fn end(&self, token: OwnerToken, turn: u32) {
        if let Some(page) = self.all().remove(&(token, turn)) {
            page.note(LogEvent::Ended {});
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<(OwnerToken, u32), CallEntry>> {
        // No code that can panic runs under this mutex.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
