//! What a test reads of the calls that were made, and asserts.

mod at_work;
mod duration;

use crate::stats::{Journal, LogEntry, LogEvent};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What became of the calls of all managers with the same servers, in the order in which it happened.
///
/// A lock is named by its key or by its template: `order:7`, `order:{id}`. One of several keys or paths is named by each of them as
/// well. `Display` writes all entries.
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
    /// All entries so far.
    #[must_use]
    pub fn entries(&self) -> Vec<LogEntry> {
        self.0.entries().clone()
    }

    /// The keys of the locks that calls have had, in their order, each as often as a call has had it: alone, or together with others
    /// that share it. Nested calls have [entered](Self::entered) those of their callers.
    #[must_use]
    pub fn acquired(&self) -> Vec<String> {
        self.keys(|event| matches!(event, LogEvent::Acquired { .. }))
    }

    /// The keys of the locks that nested calls have entered, which their callers had.
    #[must_use]
    pub fn entered(&self) -> Vec<String> {
        self.keys(|event| matches!(event, LogEvent::Entered {}))
    }

    /// The keys of the locks that calls have lost, nested ones as well.
    #[must_use]
    pub fn lost(&self) -> Vec<String> {
        self.keys(|event| matches!(event, LogEvent::Lost { .. }))
    }

    /// The keys that calls have asked for and not got.
    #[must_use]
    pub fn failed(&self) -> Vec<String> {
        self.keys(|event| matches!(event, LogEvent::Failed { .. }))
    }

    /// The keys that calls have asked for and were dropped while they waited.
    #[must_use]
    pub fn cancelled(&self) -> Vec<String> {
        self.keys(|event| matches!(event, LogEvent::Cancelled {}))
    }

    fn keys(&self, is_meant: impl Fn(&LogEvent) -> bool) -> Vec<String> {
        let entries = self.0.entries();
        entries.iter().filter(|entry| is_meant(&entry.event)).map(|entry| entry.key.as_str().to_owned()).collect()
    }

    /// How many calls were at work under one key at the same time, at the most, of the keys that `name` is or is the template
    /// of, whether they have it alone or share it. It is 1 for a lock that does what it should, unless it is shared; of one that is
    /// shared by some and not by others, [`assert_exclusive!`](crate::assert_exclusive) tells whether it does.
    ///
    /// A call counts until its body or its guard has ended, also when it has lost its lock before; a nested one that has entered the lock
    /// of its caller does not count beside that. So more than 1 is what
    /// `on_lost = continue` may lead to, and a guard that is used without a look at it.
    ///
    /// # Panics
    /// When the log has entries and none of them has that name, since it is misspelt then.
    #[must_use]
    #[track_caller]
    pub fn max_together(&self, name: &str) -> usize {
        let entries = self.entries();
        let is_known = entries.is_empty() || entries.iter().any(|entry| entry.is_called(name));
        assert!(is_known, "nobody has asked for {name:?}:\n{self}");
        at_work::most_together(&entries, name)
    }

    /// Forgets all entries, at a moment when no call has a lock: one that has is not known any more by
    /// [`max_together`](Self::max_together).
    pub fn clear(&self) {
        self.0.entries().clear();
    }

    /// What [`assert_exclusive!`](crate::assert_exclusive) is made of.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_exclusive(&self, name: &str) {
        self.check_locked(name, None);
        let entries = self.entries();
        if let Some((entry, others)) = at_work::first_beside_others(&entries, name) {
            let others: Vec<_> = others.iter().map(ToString::to_string).collect();
            let others = others.join("\n");
            panic!(
                "{name:?} was not exclusive: this call came in\n{entry}\nwhile these were at work\n{others}\nof\n{self}"
            );
        }
    }

    /// What [`assert_locked!`](crate::assert_locked) is made of, with a duration as the attribute says it.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_locked_for(&self, name: &str, ttl: &str) {
        match duration::read(ttl) {
            Some(ttl) => self.check_locked(name, Some(ttl)),
            None => panic!("`ttl = {ttl}` is no duration: write `ttl = 30s`, `ttl = 500ms` or `ttl = \"1m30s\"`"),
        }
    }

    /// What [`assert_locked!`](crate::assert_locked) is made of.
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

/// Asserts that a call has had a lock, by a [`Log`](crate::testing::Log): one with this key or template, and for this `ttl` if one
/// is given. That is written as in the attribute, `30s`, `500ms`, `"1m30s"` and `30` for seconds, or is a [`Duration`].
///
/// # Panics
/// When no call has had it, with all entries of the log.
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

/// Asserts that calls have had a lock and that it did what it should, by a [`Log`](crate::testing::Log): of the keys that are this
/// one or have this template, each was one call's alone, or shared by those who [share](crate::Mode) it, at any time; nobody had
/// a [path](crate::LockRequest::path) above or below one of them meanwhile; and nobody came in with one of so many
/// [permits](crate::LockRequest::permits) while as many others had theirs.
///
/// A call counts until its body or its guard has ended, also when it has lost its lock before: see
/// [`max_together`](crate::testing::Log::max_together).
///
/// # Panics
/// When that is not so, and when no call has had it, with all entries of the log.
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
