//! Log of lock calls, and its assertions.

mod at_work;
mod duration;

use crate::stats::{Journal, LogEntry, LogEvent};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Outcomes of the calls of all managers with the same servers, in the order in which they happened.
///
/// Methods take the key or the template of a lock: `order:7`, `order:{id}`. A lock of several keys or paths is also found by each of
/// them. `Display` writes all entries.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use redlock_runtime::{assert_locked, testing::TestServers};
///
/// let servers = TestServers::new(1);
/// let manager = servers.manager();
/// drop(manager.acquire("order:7").await.unwrap());
/// let log = servers.log();
/// assert_eq!(log.acquired(), ["order:7"]);
/// assert_eq!(log.max_together("order:7"), 1);
/// assert_locked!(log, "order:7", ttl = 30s);
/// println!("{log}");
/// # }
/// ```
#[derive(Clone)]
pub struct Log(pub(super) Arc<Journal>);

impl Log {
    /// Returns all entries so far.
    #[must_use]
    pub fn entries(&self) -> Vec<LogEntry> {
        self.0.entries().clone()
    }

    /// Returns the key of each acquired lock, exclusive or shared, in order. A key that was acquired twice is listed twice. Reentrant
    /// nested calls are not listed here, but in [`entered`](Self::entered).
    #[must_use]
    pub fn acquired(&self) -> Vec<String> {
        self.keys(|event| matches!(event, LogEvent::Acquired { .. }))
    }

    /// Returns the keys of the locks that nested calls have entered, which their callers held.
    #[must_use]
    pub fn entered(&self) -> Vec<String> {
        self.keys(|event| matches!(event, LogEvent::Entered {}))
    }

    /// Returns the keys of the locks that calls have lost, nested calls included.
    #[must_use]
    pub fn lost(&self) -> Vec<String> {
        self.keys(|event| matches!(event, LogEvent::Lost { .. }))
    }

    /// Returns the keys of the calls that have failed.
    #[must_use]
    pub fn failed(&self) -> Vec<String> {
        self.keys(|event| matches!(event, LogEvent::Failed { .. }))
    }

    /// Returns the keys of the calls that were dropped while they waited.
    #[must_use]
    pub fn cancelled(&self) -> Vec<String> {
        self.keys(|event| matches!(event, LogEvent::Cancelled {}))
    }

    fn keys(&self, is_meant: impl Fn(&LogEvent) -> bool) -> Vec<String> {
        let entries = self.0.entries();
        entries.iter().filter(|entry| is_meant(&entry.event)).map(|entry| entry.key.as_str().to_owned()).collect()
    }

    /// Returns the maximum number of calls that ran under one key at the same time. `name`: a key, or the template of several keys.
    ///
    /// The number is 1 for an exclusive lock that works. If some calls share the lock and others do not, use
    /// [`assert_exclusive!`](crate::assert_exclusive) instead.
    ///
    /// A call counts until its body or guard has ended, even after it has lost its lock. So `on_lost = continue`, or a guard that is
    /// used without a check, can lead to more than 1. A nested call that has entered the lock of its caller does not count.
    ///
    /// # Panics
    /// If the log has entries and none of them has this name: the name is misspelt.
    #[must_use]
    #[track_caller]
    pub fn max_together(&self, name: &str) -> usize {
        let entries = self.entries();
        let is_known = entries.is_empty() || entries.iter().any(|entry| entry.is_called(name));
        assert!(is_known, "the log has no call for {name:?}:\n{self}");
        at_work::max_concurrent_holders(&entries, name)
    }

    /// Removes all entries. Call it while no call holds a lock: [`max_together`](Self::max_together) does not count a call whose entry
    /// was removed.
    pub fn clear(&self) {
        self.0.entries().clear();
    }

    /// Implementation of [`assert_exclusive!`](crate::assert_exclusive).
    #[doc(hidden)]
    #[track_caller]
    pub fn check_exclusive(&self, name: &str) {
        self.check_locked(name, None);
        let entries = self.entries();
        if let Some((entry, others)) = at_work::first_conflict(&entries, name) {
            let others: Vec<_> = others.iter().map(ToString::to_string).collect();
            let others = others.join("\n");
            panic!(
                "{name:?} was not exclusive: this call acquired the lock\n{entry}\nwhile these calls were running\n\
                 {others}\nAll entries of the log:\n{self}"
            );
        }
    }

    /// Implementation of [`assert_locked!`](crate::assert_locked), with a duration in the syntax of the attribute.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_locked_for(&self, name: &str, ttl: &str) {
        match duration::read(ttl) {
            Some(ttl) => self.check_locked(name, Some(ttl)),
            None => panic!("`ttl = {ttl}` is not a duration: write `ttl = 30s`, `ttl = 500ms` or `ttl = \"1m30s\"`"),
        }
    }

    /// Implementation of [`assert_locked!`](crate::assert_locked).
    #[doc(hidden)]
    #[track_caller]
    pub fn check_locked(&self, name: &str, wanted: Option<Duration>) {
        let entries = self.entries();
        let ttls: Vec<_> = entries.iter().filter(|entry| entry.is_called(name)).filter_map(ttl_of).collect();
        let is_there = ttls.iter().any(|ttl| wanted.is_none_or(|wanted| *ttl == wanted));
        match wanted {
            _ if is_there => {}
            Some(wanted) if !ttls.is_empty() => {
                panic!("{name:?} was locked for {ttls:?}, and never for {wanted:?}:\n{self}")
            }
            _ => panic!("{name:?} was never locked:\n{self}"),
        }
    }
}

fn ttl_of(entry: &LogEntry) -> Option<Duration> {
    if let LogEvent::Acquired { ttl, .. } = entry.event { Some(ttl) } else { None }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries().iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.entries().iter()).finish()
    }
}

/// Asserts that a call has acquired the lock with this key or template, and with this `ttl` if one is given. The first argument is a
/// [`Log`].
///
/// The `ttl` has the syntax of the attribute (`30s`, `500ms`, `"1m30s"`, `30` for seconds), or is a [`Duration`].
///
/// # Panics
/// If no call has acquired the lock. The message contains all entries of the log.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use redlock_runtime::{assert_locked, testing::TestServers};
///
/// let servers = TestServers::new(1);
/// drop(servers.manager().acquire("order:7").await.unwrap());
/// assert_locked!(servers.log(), "order:7");
/// assert_locked!(servers.log(), "order:7", ttl = 30s);
/// # }
/// ```
#[macro_export]
macro_rules! assert_locked {
    ($log:expr, $name:expr $(,)?) => {
        $crate::testing::Log::check_locked(&$log, $name, ::core::option::Option::None)
    };
    ($log:expr, $name:expr, ttl = $ttl:literal $(,)?) => {
        $crate::testing::Log::check_locked_for(&$log, $name, ::core::stringify!($ttl))
    };
    ($log:expr, $name:expr, ttl = $ttl:expr $(,)?) => {
        $crate::testing::Log::check_locked(&$log, $name, ::core::option::Option::Some($ttl))
    };
}

/// Asserts that calls have acquired the locks with this key or template, and that no two conflicting calls ran at the same time. The
/// first argument is a [`Log`].
///
/// Calls conflict in these cases:
///
/// - Both have the same key, unless both [share](crate::Mode) it.
/// - One has a [path](crate::LockRequest::path) above or below the path of the other.
/// - A call has acquired a [permit](crate::LockRequest::permits) while all permits were taken.
///
/// A call counts until its body or guard has ended, even after it has lost its lock: see
/// [`max_together`](crate::testing::Log::max_together).
///
/// # Panics
/// If calls conflict, or if no call has acquired such a lock. The message contains all entries of the log.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use redlock_runtime::{LockRequest, assert_exclusive, testing::TestServers};
///
/// let servers = TestServers::new(1);
/// let manager = servers.manager();
/// let one = manager.acquire(LockRequest::shared("config")).await.unwrap();
/// let other = manager.acquire(LockRequest::shared("config")).await.unwrap();
/// drop((one, other));
/// drop(manager.acquire("config").await.unwrap());
/// assert_exclusive!(servers.log(), "config");
/// # }
/// ```
#[macro_export]
macro_rules! assert_exclusive {
    ($log:expr, $name:expr $(,)?) => {
        $crate::testing::Log::check_exclusive(&$log, $name)
    };
}
