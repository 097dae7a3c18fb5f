//! In-process queue of the calls for each key. Only the first call of a queue talks to the nodes. A call for a shared
//! lock has its own queue, and so does a permit that returns for votes ([`returning`]).
//!
//! The [`LocalQueue`] owns all acquisitions of a manager, and the watchdog that renews them. The queue of one key is
//! the state machine in [`entry`]. The call with the [`LocalOwner`] has the key, or asks for it. At its end, the turn
//! passes to the next call ([`local_owner`]).

mod enter;
mod entry;
mod hashing;
mod idle;
mod idle_locks;
mod local_owner;
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
pub(crate) use self::local_owner::LocalOwner;
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
use crate::protocol::timing::CONFIRM_AFTER;
use crate::time::clock::Instant;
use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;

/// Number of shards. It exceeds the number of cores, so that calls for different keys rarely collide. Smaller: they do.
/// Larger: a scan of all shards takes longer.
const SHARDS: usize = 64;

/// All local queues of one manager, by the name of the key in Redis.
pub(crate) struct LocalQueue {
    shared: Arc<Shared>,
    watchdog: Arc<Watchdog>,
    shards: Box<[Mutex<Shard>]>,
    hasher: Hashing,
    idling: Idling,
}

struct Shard {
    entries: HashMap<Arc<str>, Entry, Hashing>,
    /// Calls that share the lock of a key under one token, or want to.
    readers: HashMap<Arc<str>, Readers, Hashing>,
    /// Calls that wait for permits of a key.
    takers: HashMap<Arc<str>, Takers, Hashing>,
    /// Place of the next waiting call for a permit.
    next_taker: u64,
    /// Entries whose lock is idle.
    idle: IdleLocks,
    /// Time of the next check by the watchdog.
    planned: Option<Planned>,
}

impl LocalQueue {
    /// Creates the queues. Held locks are renewed on `runtime`, which must not be blocked, or on the runtime of the
    /// first call that holds one.
    pub(crate) fn new(shared: Arc<Shared>, runtime: Option<Handle>) -> Self {
        let watchdog = Arc::new(Watchdog::new(shared.clock, runtime));
        let hashing = || hashing::of(&shared);
        let shards = std::iter::repeat_with(|| Mutex::new(Shard::new(hashing()))).take(SHARDS).collect();
        let hasher = hashing();
        Self { shared, watchdog, shards, hasher, idling: Idling::default() }
    }

    /// Returns the state that all acquisitions of the manager share.
    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns the rest of the holder's lease, after which a waiting call for `key` should check it. A lease can end if
    /// a guard is never dropped.
    pub(crate) fn lease_left(&self, key: &LockKey) -> Option<Duration> {
        self.acquisition(key.name())?.lease_left()
    }

    /// Returns the token of this process for the key that is called `name` in Redis.
    pub(crate) fn acquisition(&self, name: &str) -> Option<Arc<Acquisition>> {
        Some(Arc::clone(self.shard(name).entries.get(name)?.acquisition()))
    }

    /// Returns the token of this process that `subject` names, if it is known here: that of the key's queue, or one
    /// that shares the lock.
    pub(crate) fn find(&self, subject: &Subject) -> Option<Arc<Acquisition>> {
        let is_it = |ours: &Arc<Acquisition>| *ours.token() == subject.token && ours.concerns(subject.key.name());
        let shares = || self.acquisition(&line_of(&subject.token)).filter(is_it);
        self.acquisition(subject.key.name()).filter(is_it).or_else(shares)
    }

    /// Returns all tokens of this process.
    pub(crate) fn acquisitions(&self) -> Vec<Arc<Acquisition>> {
        let of_shard =
            |shard| lock(shard).entries.values().map(|entry| Arc::clone(entry.acquisition())).collect::<Vec<_>>();
        self.shards.iter().flat_map(of_shard).collect()
    }

    /// Applies `change` to all tokens of this process, and makes the watchdog check them.
    pub(crate) fn change_all(self: &Arc<Self>, now: Instant, change: impl Fn(&Acquisition)) {
        for shard in &self.shards {
            let all: Vec<_> = lock(shard).entries.values().map(|entry| Arc::clone(entry.acquisition())).collect();
            for acquisition in all {
                change(&acquisition);
            }
            // After the changes, because an earlier check has not seen them.
            let mut shard = lock(shard);
            shard.entries.values_mut().for_each(|entry| entry.schedule_check(Planned::at(now)));
            shard.planned = shard.planned.map(|planned| planned.or(Planned::at(now)));
        }
        self.schedule_check_within(Duration::ZERO, now);
    }

    /// Schedules the first check of the lock of `acquisition` within that time. It is held from now on.
    pub(crate) fn watch(self: &Arc<Self>, acquisition: &Acquisition, within: Duration, now: Instant) {
        let (line, planned) = (acquisition.line(), Planned::within(within, now));
        self.shard(&line).schedule_check(&line, planned);
        self.schedule_check_within(planned.by.since(now), now);
    }

    /// Plans the confirmation of the claims of `acquisition`, if a body can begin before, or if one of them has arrived
    /// while the lock was held.
    pub(crate) fn plan_confirmation(self: &Arc<Self>, acquisition: &Acquisition) {
        let now = self.shared.clock.now();
        if acquisition.confirms_later(now) {
            self.watch(acquisition, CONFIRM_AFTER, now);
        } else if let Some(within) = acquisition.late_claim_within(now) {
            self.watch(acquisition, within, now);
        }
    }

    /// Makes the watchdog check the lock of `acquisition` at once.
    pub(crate) fn look_at(self: &Arc<Self>, acquisition: &Acquisition) {
        let (line, now) = (acquisition.line(), self.shared.clock.now());
        self.shard(&line).schedule_check(&line, Planned::at(now));
        self.schedule_check_within(Duration::ZERO, now);
    }

    /// Makes the watchdog check `within` that time from `now`.
    pub(crate) fn schedule_check_within(self: &Arc<Self>, within: Duration, now: Instant) {
        let watched = || -> Weak<dyn Watched> {
            let local: Arc<dyn Watched> = self.clone();
            Arc::downgrade(&local)
        };
        self.watchdog.schedule_check_within(watched, within, now);
    }

    /// Ends every wait in the local queues and in the queues of the nodes, and releases all idle locks.
    pub(crate) fn close(&self) {
        self.shared.close();
        if self.shared.rules.apply(Rule::ClosingEndsTheLines) {
            self.shards.iter().for_each(close);
        }
        self.release_all_idle();
        self.shared.changed.notify_waiters();
    }

    /// Returns the shard of the key called `name`.
    fn shard(&self, name: &str) -> MutexGuard<'_, Shard> {
        self.part(self.hash(name))
    }

    fn hash(&self, name: &str) -> u64 {
        self.hasher.hash_one(name)
    }

    /// Returns the shard of the keys with this `hash`.
    fn part(&self, hash: u64) -> MutexGuard<'_, Shard> {
        #[expect(clippy::cast_possible_truncation, reason = "the lowest bits choose the shard")]
        let index = hash as usize % SHARDS;
        #[expect(clippy::indexing_slicing, reason = "there are that many shards")]
        lock(&self.shards[index])
    }

    /// Returns the shards that may be checked at `now`: the latest time of each check and the number of the shard, the
    /// most urgent first. Also returns the time of the first check of the other shards.
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

/// Returns the earlier of two optional times.
fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

impl Watched for LocalQueue {
    fn look(&self, now: Instant, due: &mut Vec<Due>) -> Option<Instant> {
        // Changes during this check wake the watchdog, so each shard is read once.
        let (parts, mut next) = self.parts_due(now);
        let is_due = parts.clone().next().is_some_and(|(at, _)| at <= now);
        for (at, index) in parts {
            if !is_due || schedule::is_batch_full(due.len()) {
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

    fn schedule_check(&self, acquisition: &Acquisition, at: Instant) {
        let (line, planned) = (acquisition.line(), Planned::together(at, acquisition.ttl()));
        self.shard(&line).schedule_check(&line, planned);
    }

    fn rules(&self) -> Rules {
        self.shared.rules
    }

    fn answered(self: Arc<Self>, permit: &Arc<Acquisition>) {
        self.return_for_votes(permit);
    }
}

/// The manager and all of its guards were dropped.
impl Drop for LocalQueue {
    fn drop(&mut self) {
        self.watchdog.end();
    }
}

/// Capacity that an empty shard keeps, in entries: a table of 32. Smaller: memory is allocated all the time. Larger:
/// idle managers keep unused memory.
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

    /// Removes the entry of the key called `name`, which no call has or waits for.
    fn remove(&mut self, name: &str) {
        self.entries.remove(name);
        shrink(&mut self.entries);
    }

    /// Schedules a check of the key called `name` by the watchdog, at the time `planned` or earlier.
    fn schedule_check(&mut self, name: &str, planned: Planned) {
        self.planned = Some(self.planned.map_or(planned, |before| before.or(planned)));
        if let Some(entry) = self.entries.get_mut(name) {
            entry.schedule_check(planned);
        }
    }

    /// Checks the entries that may be checked, adds those that need an action to `due`, and notes the time of the next
    /// check. Returns the locks whose idle time has ended.
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

/// Frees the excess capacity of a `table`.
fn shrink<E>(table: &mut HashMap<Arc<str>, E, Hashing>) {
    let room = table.capacity();
    if room > LEAST_ROOM && table.is_empty() {
        // A table that is allocated between other allocations would keep the allocator from freeing those.
        *table = HashMap::with_hasher(table.hasher().clone());
    } else if room > 2 * LEAST_ROOM && table.len() < room / 4 {
        table.shrink_to(room / 2);
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // Code under this mutex cannot panic.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every wait in one shard.
fn close(shard: &Mutex<Shard>) {
    let (closed, readers): (Vec<_>, Vec<_>) = {
        let mut shard = lock(shard);
        let readers = shard.readers.values_mut().flat_map(Readers::close).collect();
        (shard.entries.values_mut().map(Entry::close).collect(), readers)
    };
    for reader in readers {
        reader.notify_alone();
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
