//! What becomes of each call, one after the other: for tests, which want to know more than numbers.

use crate::error::{LockError, LossCause};
use crate::lock::parts::Parts;
use crate::lock::{LockKey, Mode, OwnerToken};
use crate::protocol::fencing_token::FencingToken;
use crate::time::clock::Clock;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Something that became of a call, as a [`Log`](crate::testing::Log) tells it.
///
/// Each entry is about one call, whatever it takes at the servers. Of several readers in one process, which share the vote that the
/// first of them got, each has entries of its own, and so has a nested call that [enters](LogEvent::Entered) the lock of its caller.
///
/// `Display` is a line without tokens, so that two runs of one seed can be compared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogEntry {
    /// When, since the servers were made.
    pub at: Duration,
    /// Which manager the call was made with, in the order in which they were made: the first one is 0.
    pub manager: usize,
    /// What the call has asked for, with the namespace of its manager: of [several](crate::LockRequest::all) keys or paths, all of
    /// them, as in `"account:1" + "account:2"`.
    pub key: LockKey,
    /// The key as the attribute says it, or the [`label`](crate::LockRequest::label) of a call by hand.
    pub template: Option<&'static str>,
    /// Whether it is for one call alone or shared with others.
    pub mode: Mode,
    /// What happened.
    pub event: LogEvent,
    /// Every name that the call has asked for, and what is above it.
    pub(crate) parts: Parts,
}

/// What a [`LogEntry`] tells of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LogEvent {
    /// It has its lock: alone, or together with others that share it.
    #[non_exhaustive]
    Acquired {
        /// For how long the nodes keep the lock without a renewal.
        ttl: Duration,
        /// Its fencing token, if it has asked for one.
        fencing_token: Option<FencingToken>,
        /// Of how many [permits](crate::LockRequest::permits) it has one, if that is what it has asked for.
        permits: Option<u32>,
    },
    /// It is a [reentrant](crate::LockRequest::reentrant) call in the body of one that has the lock, and goes on by that: until it has
    /// [`Left`](Self::Left).
    #[non_exhaustive]
    Entered {},
    /// It has lost its lock, and may still be at work: see [`Ended`](Self::Ended).
    #[non_exhaustive]
    Lost {
        /// Why.
        cause: LossCause,
    },
    /// It shares its lock from now on: its guard was [downgraded](crate::LockGuard::downgrade).
    #[non_exhaustive]
    Downgraded {},
    /// It is over: its body has ended or was dropped, or its guard was given back, dropped or detached.
    #[non_exhaustive]
    Ended {},
    /// It had [`Entered`](Self::Entered) the lock of its caller, and is over. The caller has the lock still, unless it has lost it.
    #[non_exhaustive]
    Left {},
    /// It was dropped while it waited for its lock. One for a [window](crate::LockRequest::once_per) that was dropped is about the
    /// key that was asked for.
    #[non_exhaustive]
    Cancelled {},
    /// It has no lock, by this error.
    #[non_exhaustive]
    Failed {
        /// The one that the call has returned; that of a [window](crate::LockRequest::once_per) is about the key of the window.
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

/// What became of all calls that were made at the same servers.
#[derive(Debug)]
pub(crate) struct Journal {
    clock: Clock,
    entries: Mutex<Vec<LogEntry>>,
}

impl Journal {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, entries: Mutex::default() }
    }

    /// What was noted so far.
    pub(crate) fn entries(&self) -> MutexGuard<'_, Vec<LogEntry>> {
        // No code that can panic runs under this mutex.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where one manager notes what becomes of its calls.
#[derive(Clone, Debug)]
pub(crate) struct Notebook {
    pub(crate) journal: Arc<Journal>,
    pub(crate) manager: usize,
}

impl Notebook {
    pub(crate) fn note(&self, (parts, mode): (Parts, Mode), template: Option<&'static str>, event: LogEvent) {
        let (at, manager, key) = (self.journal.clock.now().since_origin(), self.manager, parts.key());
        self.journal.entries().push(LogEntry { at, manager, key, template, mode, event, parts });
    }
}

/// A call, as a manager notes what becomes of it.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) notebook: Notebook,
    pub(crate) parts: Parts,
    pub(crate) mode: Mode,
    pub(crate) template: Option<&'static str>,
}

impl Page {
    pub(crate) fn note(&self, event: LogEvent) {
        self.notebook.note((self.parts.clone(), self.mode), self.template, event);
    }
}

/// The calls of one manager that have their locks, by the tokens and the turns in which they have them.
#[derive(Debug, Default)]
pub(crate) struct Stays(Mutex<HashMap<(OwnerToken, u32), Page>>);

impl Stays {
    /// A call has the lock in that `turn` of `token`.
    pub(crate) fn begin(&self, token: OwnerToken, turn: u32, page: Page) {
        self.all().insert((token, turn), page);
    }

    /// The call shares its lock from now on.
    pub(crate) fn lower(&self, token: OwnerToken, turn: u32) {
        if let Some(page) = self.all().get_mut(&(token, turn)) {
            page.parts = page.parts.lowered();
            page.mode = Mode::Shared;
            page.note(LogEvent::Downgraded {});
        }
    }

    /// The call is over, whatever has become of the lock.
    pub(crate) fn end(&self, token: OwnerToken, turn: u32) {
        if let Some(page) = self.all().remove(&(token, turn)) {
            page.note(LogEvent::Ended {});
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<(OwnerToken, u32), Page>> {
        // No code that can panic runs under this mutex.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
