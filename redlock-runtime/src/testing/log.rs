//! What a test reads of the calls that were made, and asserts.

use crate::lock::Mode;
use crate::stats::{Journal, LogEntry, LogEvent};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What became of the calls of all managers with the same servers, in the order in which it happened.
///
/// A lock is named by its key or by its template: `order:7`, `order:{id}`. `Display` writes all entries.
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
        let is_known = entries.is_empty() || entries.iter().any(|entry| is_called(entry, name));
        assert!(is_known, "nobody has asked for {name:?}:\n{self}");
        together(&entries, name).map(|(_, AtWork { writers, readers })| writers + readers).max().unwrap_or_default()
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
        if let Some((entry, at_work)) = together(&entries, name).find(|(_, at_work)| !at_work.may_be()) {
            let AtWork { writers, readers } = at_work;
            panic!(
                "{writers} had {name:?} alone and {readers} shared it at the same time, from here on: {entry}\n{self}"
            );
        }
    }

    /// What [`assert_locked!`](crate::assert_locked) is made of, with a duration as the attribute says it.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_locked_for(&self, name: &str, ttl: &str) {
        match duration(ttl) {
            Some(ttl) => self.check_locked(name, Some(ttl)),
            None => panic!("`ttl = {ttl}` is no duration: write `ttl = 30s`, `ttl = 500ms` or `ttl = \"1m30s\"`"),
        }
    }

    /// What [`assert_locked!`](crate::assert_locked) is made of.
    #[doc(hidden)]
    #[track_caller]
    pub fn check_locked(&self, name: &str, wanted: Option<Duration>) {
        let entries = self.entries();
        let ttls: Vec<_> = entries.iter().filter(|entry| is_called(entry, name)).filter_map(ttl_of).collect();
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

/// Who is at work under one key.
#[derive(Clone, Copy, Default)]
struct AtWork {
    /// Those who have the lock alone, and those who share it.
    writers: usize,
    readers: usize,
}

impl AtWork {
    const fn may_be(self) -> bool {
        self.writers == 0 || (self.writers == 1 && self.readers == 0)
    }

    /// What an entry makes of it.
    fn note(&mut self, entry: &LogEntry) {
        let Self { writers, readers } = self;
        let count = if entry.mode == Mode::Shared { readers } else { writers };
        match entry.event {
            LogEvent::Acquired { .. } => *count += 1,
            LogEvent::Ended {} => *count = count.saturating_sub(1),
            LogEvent::Downgraded {} => {
                (self.writers, self.readers) = (self.writers.saturating_sub(1), self.readers + 1);
            }
            LogEvent::Lost { .. }
            | LogEvent::Failed { .. }
            | LogEvent::Cancelled {}
            // It is the caller of a nested call that has the lock, and is counted.
            | LogEvent::Entered {}
            | LogEvent::Left {} => {}
        }
    }
}

/// Who is at work under the key of each entry after it, of those that are called `name`.
fn together<'l>(entries: &'l [LogEntry], name: &'l str) -> impl Iterator<Item = (&'l LogEntry, AtWork)> {
    let mut keys: HashMap<&str, AtWork> = HashMap::new();
    entries.iter().filter(move |entry| is_called(entry, name)).map(move |entry| {
        let at_work = keys.entry(entry.key.name()).or_default();
        at_work.note(entry);
        (entry, *at_work)
    })
}

fn is_called(entry: &LogEntry, name: &str) -> bool {
    entry.key.as_str() == name || entry.template == Some(name)
}

fn ttl_of(entry: &LogEntry) -> Option<Duration> {
    if let LogEvent::Acquired { ttl, .. } = entry.event { Some(ttl) } else { None }
}

/// A duration as the attribute says it: `30`, `30s`, `"1m30s"`.
fn duration(text: &str) -> Option<Duration> {
    let text = text.trim_matches('"').replace('_', "");
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let (mut rest, mut sum) = (text.as_str(), Duration::ZERO);
    while !rest.is_empty() {
        let (number, unit) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, next) = unit.split_at(unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len()));
        let millis = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        sum += Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(millis)?);
        rest = next;
    }
    Some(sum)
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
/// one or have this template, each was one call's alone, or shared by those who [share](crate::Mode) it, at any time.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_in_the_attribute() {
        let table = [
            ("30", Some(30_000)),
            ("30s", Some(30_000)),
            ("\"1m30s\"", Some(90_000)),
            ("500ms", Some(500)),
            ("1_000ms", Some(1000)),
            ("2h", Some(7_200_000)),
            ("1d", Some(86_400_000)),
            ("TTL", None),
            ("30x", None),
            ("s", None),
        ];
        for (text, millis) in table {
            assert_eq!(duration(text), millis.map(Duration::from_millis), "{text}");
        }
    }
}
