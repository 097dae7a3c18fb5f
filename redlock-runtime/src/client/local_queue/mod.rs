//! Calls of one process for the same key stand in a line in memory; the first of them represents the process at the
//! nodes. One that shares its lock stands in a line of its own, and so does a permit that comes back for votes ([`returning`]).
//!
//! The [`LocalQueue`] owns all acquisitions of a manager, and the watchdog that looks after them. What the line of one key
//! does is the state machine in [`entry`]. Whoever has the [`LocalTurn`] has the key, or asks for it; when the turn ends, it
//! passes to the next call ([`local_turn`]).

mod enter;
mod entry;
mod hashing;
mod idle;
mod idle_locks;
mod local_turn;
mod local_wait;
mod local_waiter;
mod member;
mod passing_permits;
mod permit_wait;
mod reader;
mod reader_wait;
mod readers;
mod returning;
mod takers;
#[cfg(test)]
mod tests;
mod together;

pub(crate) use self::enter::Entered;
pub(crate) use self::entry::Superseded;
pub(crate) use self::local_turn::LocalTurn;
pub(crate) use self::local_wait::LocalWait;
pub(crate) use self::local_waiter::LineClosed;
pub(crate) use self::member::Member;
pub(crate) use self::permit_wait::PermitWait;
pub(crate) use self::reader_wait::{News, ReaderWait};
pub(crate) use self::together::{LONGEST_GATHERING, Together};

use self::entry::Entry;
use self::hashing::Hashing;
use self::idle_locks::{IdleLocks, Idling};
use self::readers::Readers;
use self::takers::Takers;
use crate::client::acquisition::Acquisition;
use crate::client::shared::Shared;
use crate::client::watchdog::schedule::{self, Due, Planned};
use crate::client::watchdog::{Watchdog, Watched};
use crate::lock::LockKey;
use crate::lock::reserved::line_of;
use crate::protocol::command::Subject;
use crate::protocol::rules::{Rule, Rules};
use crate::time::clock::Instant;
use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;

/// More than there are cores, so that calls for different keys rarely meet. Fewer, they do; more, a look at all of them takes
/// longer.
const SHARDS: usize = 64;

/// All the lines of one manager, by the name of the key in Redis.
pub(crate) struct LocalQueue {
    shared: Arc<Shared>,
    watchdog: Arc<Watchdog>,
    shards: Box<[Mutex<Shard>]>,
    hasher: Hashing,
    idling: Idling,
}

struct Shard {
    entries: HashMap<Arc<str>, Entry, Hashing>,
    /// The calls that have the lock of a key by one token, or want it so.
    readers: HashMap<Arc<str>, Readers, Hashing>,
    /// The calls that wait for permits of a key.
    takers: HashMap<Arc<str>, Takers, Hashing>,
    /// The place of the next of them.
    next_taker: u64,
    /// Those of the entries that no call has.
    idle: IdleLocks,
    /// When the watchdog should look at the entries.
    planned: Option<Planned>,
}

impl LocalQueue {
    /// Held locks are renewed on `runtime`, which nothing should block, or on that of the first call that holds one.
    pub(crate) fn new(shared: Arc<Shared>, runtime: Option<Handle>) -> Self {
        let watchdog = Arc::new(Watchdog::new(shared.clock, runtime));
        let hashing = || hashing::of(&shared);
        let shards = std::iter::repeat_with(|| Mutex::new(Shard::new(hashing()))).take(SHARDS).collect();
        let hasher = hashing();
        Self { shared, watchdog, shards, hasher, idling: Idling::default() }
    }

    /// What every acquisition of the manager needs.
    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// When whoever waits for `key` should look whether the lease of the holder has run out, as it does when a guard is
    /// never dropped.
    pub(crate) fn lease_left(&self, key: &LockKey) -> Option<Duration> {
        self.acquisition(key.name())?.lease_left()
    }

    /// The token of this process for the key that is called `name` in Redis.
    pub(crate) fn acquisition(&self, name: &str) -> Option<Arc<Acquisition>> {
        Some(Arc::clone(self.shard(name).entries.get(name)?.acquisition()))
    }

    /// The token of this process that `subject` is about, if it is known here: that of the line of the key, or one that shares
    /// the lock.
    pub(crate) fn find(&self, subject: &Subject) -> Option<Arc<Acquisition>> {
        let is_it = |ours: &Arc<Acquisition>| *ours.token() == subject.token && ours.concerns(subject.key.name());
        let shares = || self.acquisition(&line_of(&subject.token)).filter(is_it);
        self.acquisition(subject.key.name()).filter(is_it).or_else(shares)
    }

    /// All tokens of this process.
    pub(crate) fn acquisitions(&self) -> Vec<Arc<Acquisition>> {
        let of_shard =
            |shard| lock(shard).entries.values().map(|entry| Arc::clone(entry.acquisition())).collect::<Vec<_>>();
        self.shards.iter().flat_map(of_shard).collect()
    }

    /// Lets `change` happen to all tokens of this process, and the watchdog looks at them then.
    pub(crate) fn change_all(self: &Arc<Self>, now: Instant, change: impl Fn(&Acquisition)) {
        for shard in &self.shards {
            let all: Vec<_> = lock(shard).entries.values().map(|entry| Arc::clone(entry.acquisition())).collect();
            for acquisition in all {
                change(&acquisition);
            }
            // After the changes: a look in between has not seen them.
            let mut shard = lock(shard);
            shard.entries.values_mut().for_each(|entry| entry.look_by(Planned::at(now)));
            shard.planned = shard.planned.map(|planned| planned.or(Planned::at(now)));
        }
        self.look_within(Duration::ZERO, now);
    }

    /// The lock of `acquisition` is held from now on with this `ttl`, and the watchdog looks at it in time.
    pub(crate) fn watch(self: &Arc<Self>, acquisition: &Acquisition, ttl: Duration, now: Instant) {
        let (line, planned) = (acquisition.line(), Planned::first(ttl, now));
        self.shard(&line).look_by(&line, planned);
        self.look_within(planned.by.since(now), now);
    }

    /// The watchdog looks at the lock of `acquisition` at once.
    pub(crate) fn look_at(self: &Arc<Self>, acquisition: &Acquisition) {
        let (line, now) = (acquisition.line(), self.shared.clock.now());
        self.shard(&line).look_by(&line, Planned::at(now));
        self.look_within(Duration::ZERO, now);
    }

    /// Sees to it that the watchdog looks `within` that time from `now`.
    pub(crate) fn look_within(self: &Arc<Self>, within: Duration, now: Instant) {
        let watched = || -> Weak<dyn Watched> {
            let local: Arc<dyn Watched> = self.clone();
            Arc::downgrade(&local)
        };
        self.watchdog.look_within(watched, within, now);
    }

    /// Ends every wait: those in the lines, and those in the queues of the nodes; and gives back what is idle.
    pub(crate) fn close(&self) {
        self.shared.close();
        if self.shared.rules.apply(Rule::ClosingEndsTheLines) {
            self.shards.iter().for_each(close);
        }
        self.give_back_all();
        self.shared.changed.notify_waiters();
    }

    /// The part of the lines in which the one of the key called `name` is.
    fn shard(&self, name: &str) -> MutexGuard<'_, Shard> {
        self.part(self.hash(name))
    }

    fn hash(&self, name: &str) -> u64 {
        self.hasher.hash_one(name)
    }

    /// The part of the lines for keys with this `hash`.
    fn part(&self, hash: u64) -> MutexGuard<'_, Shard> {
        #[expect(clippy::cast_possible_truncation, reason = "the lowest bits choose the shard")]
        let index = hash as usize % SHARDS;
        #[expect(clippy::indexing_slicing, reason = "there are that many shards")]
        lock(&self.shards[index])
    }

    /// By when the watchdog should look at the parts of the lines that it may look at `now`, and their numbers, the most urgent
    /// first; and when at any of the others, at the latest.
    fn parts_due(&self, now: Instant) -> (impl Iterator<Item = (Instant, usize)> + Clone, Option<Instant>) {
        // On the stack: see `Memory` of the watchdog.
        let (mut due, mut next) = ([None; SHARDS], None);
        for ((index, shard), due) in self.shards.iter().enumerate().zip(&mut due) {
            match lock(shard).planned {
                Some(planned) if planned.from <= now => *due = Some((planned.by, index)),
                planned => next = earliest(next, planned.map(|planned| planned.by)),
            }
        }
        due.sort_unstable();
        (due.into_iter().flatten(), next)
    }
}

/// The first of two times, of which there may be none.
fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

impl Watched for LocalQueue {
    fn look(&self, now: Instant, due: &mut Vec<Due>) -> Option<Instant> {
        // What changes while this looks wakes the watchdog, so that each part is asked once.
        let (parts, mut next) = self.parts_due(now);
        let is_due = parts.clone().next().is_some_and(|(at, _)| at <= now);
        for (at, index) in parts {
            if !is_due || schedule::is_crowd(due.len()) {
                return earliest(next, Some(at));
            }
            let Some(part) = self.shards.get(index) else { break };
            let (ended, next_in_part) = {
                let mut shard = lock(part);
                (shard.look(now, self.shared.rules, due), shard.planned)
            };
            next = earliest(next, next_in_part.map(|planned| planned.by));
            self.give_back(&ended);
        }
        next
    }

    fn look_by(&self, acquisition: &Acquisition, at: Instant) {
        let (line, planned) = (acquisition.line(), Planned::together(at, acquisition.ttl()));
        self.shard(&line).look_by(&line, planned);
    }

    fn rules(&self) -> Rules {
        self.shared.rules
    }

    fn answered(self: Arc<Self>, permit: &Arc<Acquisition>) {
        self.return_for_votes(permit);
    }
}

/// The manager and all of its guards are gone.
impl Drop for LocalQueue {
    fn drop(&mut self) {
        self.watchdog.end();
    }
}

/// A part of the lines that is empty keeps room for this many entries, which is a table of 32. Fewer, and room is made anew
/// all the time; more, and idle managers keep it for nothing.
const LEAST_ROOM: usize = 28;

impl Shard {
    fn new(hashing: Hashing) -> Self {
        let (entries, readers) = (HashMap::with_hasher(hashing.clone()), HashMap::with_hasher(hashing.clone()));
        Self {
            entries,
            readers,
            takers: HashMap::with_hasher(hashing),
            next_taker: 0,
            idle: IdleLocks::default(),
            planned: None,
        }
    }

    /// Nobody has the key called `name`, or waits for it.
    fn remove(&mut self, name: &str) {
        self.entries.remove(name);
        shrink(&mut self.entries);
    }

    /// The watchdog should look at the entry of the key called `name` as is `planned`, or before.
    fn look_by(&mut self, name: &str, planned: Planned) {
        self.planned = Some(self.planned.map_or(planned, |before| before.or(planned)));
        if let Some(entry) = self.entries.get_mut(name) {
            entry.look_by(planned);
        }
    }

    /// Looks at the entries for which it is time, or may be, puts those to `due` that are, and notes when to look again. Returns
    /// the locks that have been idle for long enough.
    fn look(&mut self, now: Instant, rules: Rules, due: &mut Vec<Due>) -> Vec<Arc<Acquisition>> {
        let ended = if rules.apply(Rule::IdleEnds) { self.end_overdue(now) } else { Vec::new() };
        let next = |entry: &mut Entry| {
            let idle = || Some(Planned::at(entry.idle_until()?));
            if entry.is_left() { idle() } else { Some(entry.look(now, due)) }
        };
        self.planned = self.entries.values_mut().filter_map(next).reduce(Planned::or);
        ended
    }
}

/// Gives room for many more entries than there are in a `table` back.
fn shrink<E>(table: &mut HashMap<Arc<str>, E, Hashing>) {
    let room = table.capacity();
    if room > LEAST_ROOM && table.is_empty() {
        // A table that was made in the midst of others would keep the allocator from giving those back.
        *table = HashMap::with_hasher(table.hasher().clone());
    } else if room > 2 * LEAST_ROOM && table.len() < room / 4 {
        table.shrink_to(room / 2);
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // No code that can panic runs under this mutex.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every wait in one part of the lines.
fn close(shard: &Mutex<Shard>) {
    let (closed, readers): (Vec<_>, Vec<_>) = {
        let mut shard = lock(shard);
        let readers = shard.readers.values_mut().flat_map(Readers::close).collect();
        (shard.entries.values_mut().map(Entry::close).collect(), readers)
    };
    for reader in readers {
        reader.goes_alone();
    }
    for (acquisition, waiters) in closed {
        for waiter in waiters {
            waiter.close();
        }
        acquisition.leave_queues();
    }
}

impl fmt::Debug for LocalQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalQueue").field("shared", &self.shared).finish_non_exhaustive()
    }
}
