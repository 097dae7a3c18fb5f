//! Calls of one process for the same key stand in a line in memory; the first of them represents the process at the
//! nodes.
//!
//! An entry exists only while somebody holds the key or waits for it.

mod local_turn;
mod local_wait;
#[cfg(test)]
mod tests;

pub(crate) use self::local_turn::{Seat, TakenOver};
use self::local_wait::Waiter;
pub(crate) use self::local_wait::{Ended, Ticket};
use crate::client::acquisition::{Look, Ownership};
use crate::client::shared::Core;
use crate::lock::LockKey;
use crate::protocol::command::Subject;
use crate::time::clock::Instant;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// More than there are cores, so that calls for different keys rarely meet.
const SHARDS: usize = 64;
/// A lock that is taken now is looked at after this part of its ttl: well before a third of it is over.
pub(crate) const LOOKS_PER_TTL: u32 = 8;
/// What is due within this part of its ttl is renewed together with what is due now.
const TOGETHER: u32 = 32;
/// Parts of the line that are to be looked at within this time are looked at together: what costs most is to wake up.
const SOON: Duration = Duration::from_millis(100);
/// Unless so much is due already: neither this process nor the nodes should be held up by a crowd.
const MANY: usize = 256;

/// Keys may come from outside, and must not be able to meet in one place on purpose.
#[cfg(not(test))]
type Hashing = std::hash::RandomState;
/// The same order in every run of a simulation.
#[cfg(test)]
type Hashing = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// All the lines of one manager, by the name of the key in Redis.
pub(crate) struct LocalQueue {
    shards: Box<[Mutex<Shard>]>,
    hasher: Hashing,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<Arc<str>, Entry, Hashing>,
    /// When the watchdog should look at the entries, at the latest.
    look_at: Option<Instant>,
}

/// What the watchdog finds.
pub(crate) struct Looked {
    pub(crate) due: Vec<Arc<Ownership>>,
    /// When to look again, if anything is held or wanted.
    pub(crate) next: Option<Instant>,
}

/// One key that somebody here holds or wants. Whoever has its [`Seat`] sees to it that it is removed.
struct Entry {
    /// The token with which the process has the key or asks for it.
    ownership: Arc<Ownership>,
    waiters: BTreeMap<u64, Arc<Waiter>>,
    next_place: u64,
}

/// What a call wants of the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) ttl: Duration,
    pub(crate) is_fenced: bool,
    /// Whether it takes a place behind others.
    pub(crate) waits: bool,
}

/// Where a call finds itself.
pub(crate) enum Entered {
    First(Seat),
    Behind(Ticket),
    /// Somebody here has the key, and the caller does not wait.
    Taken,
}

impl LocalQueue {
    pub(crate) fn new() -> Self {
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Self { shards, hasher: Hashing::default() }
    }

    /// Takes the seat for `key`, or a place behind whoever has it.
    pub(crate) fn enter(core: &Arc<Core>, key: &LockKey, wish: Wish, now: Instant) -> Entered {
        let mut shard = core.local.shard(key.name());
        let look_at = now.after(wish.ttl / LOOKS_PER_TTL);
        shard.look_at = Some(shard.look_at.map_or(look_at, |at| at.min(look_at)));
        let shard = &mut shard.entries;
        let first = || Arc::new(Ownership::new(core, Subject::new(key.clone(), core.new_token()), wish.ttl, now));
        let Some(entry) = shard.get_mut(key.name()) else {
            let ownership = first();
            shard.insert(key.shared_name(), Entry::new(Arc::clone(&ownership)));
            return Entered::First(Seat::new(ownership));
        };
        if entry.is_free() {
            return Entered::First(entry.take_over(first()));
        }
        if !wish.waits {
            return Entered::Taken;
        }
        let place = entry.next_place;
        entry.next_place += 1;
        let waiter = Arc::new(Waiter::new(wish.ttl, wish.is_fenced));
        entry.waiters.insert(place, Arc::clone(&waiter));
        Entered::Behind(Ticket::new(core, key, place, waiter))
    }

    /// When whoever waits for `key` should look whether the lease of the holder has run out, as it does when a guard is
    /// never dropped.
    pub(crate) fn lease_left(&self, key: &LockKey) -> Option<Duration> {
        self.ownership(key.name())?.lease_left()
    }

    /// Sees to it that the watchdog looks at `key` at `at`, or before.
    pub(crate) fn look_by(&self, key: &LockKey, at: Instant) {
        let mut shard = self.shard(key.name());
        shard.look_at = Some(shard.look_at.map_or(at, |look_at| look_at.min(at)));
    }

    /// The token of this process for the key that is called `name` in Redis.
    pub(crate) fn ownership(&self, name: &str) -> Option<Arc<Ownership>> {
        Some(Arc::clone(&self.shard(name).entries.get(name)?.ownership))
    }

    /// What is due by now, and with it what is due soon: so that renewals go out together.
    pub(crate) fn look(&self, now: Instant) -> Looked {
        let (mut due, next) = (Vec::new(), self.next_look());
        if next.is_none_or(|next| now < next) {
            return Looked { due, next };
        }
        let soon = now.after(SOON);
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let by = if due.len() < MANY { soon } else { now };
            if shard.look_at.is_some_and(|at| at <= by) {
                shard.look(now, &mut due);
            }
        }
        Looked { due, next: self.next_look() }
    }

    fn next_look(&self) -> Option<Instant> {
        let look_at = |shard: &Mutex<Shard>| shard.lock().unwrap_or_else(PoisonError::into_inner).look_at;
        self.shards.iter().filter_map(look_at).min()
    }

    /// All tokens of this process, which the watchdog should look at by `now`.
    pub(crate) fn all(&self, now: Instant) -> Vec<Arc<Ownership>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.look_at = shard.look_at.map(|at| at.min(now));
            all.extend(shard.entries.values().map(|entry| Arc::clone(&entry.ownership)));
        }
        all
    }

    /// Ends every wait in every line, and leaves the queues of the nodes.
    pub(crate) fn close(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let closed: Vec<_> = shard.entries.values_mut().map(Entry::close).collect();
            drop(shard);
            for (ownership, waiters) in closed {
                for waiter in waiters.into_values() {
                    waiter.close();
                }
                ownership.leave_queues();
            }
        }
    }

    fn shard(&self, name: &str) -> MutexGuard<'_, Shard> {
        let hash = self.hasher.hash_one(name);
        #[expect(clippy::cast_possible_truncation, reason = "the lowest bits choose the shard")]
        let index = hash as usize % SHARDS;
        #[expect(clippy::indexing_slicing, reason = "there are that many shards")]
        let shard = &self.shards[index];
        // No code that can panic runs under this mutex.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn look(&mut self, now: Instant, due: &mut Vec<Arc<Ownership>>) {
        self.look_at = None;
        for entry in self.entries.values() {
            let ttl = entry.ownership.ttl();
            let again = now.after(ttl / LOOKS_PER_TTL);
            let next = match entry.ownership.look(now, now.after(ttl / TOGETHER)) {
                Look::Later(at) => at,
                Look::Due => {
                    due.push(Arc::clone(&entry.ownership));
                    again
                }
                // It may be held by then.
                Look::Nothing => again,
            };
            self.look_at = self.look_at.into_iter().chain([next]).min();
        }
    }
}

impl Entry {
    const fn new(ownership: Arc<Ownership>) -> Self {
        Self { ownership, waiters: BTreeMap::new(), next_place: 0 }
    }

    /// Whether the seat can be taken from whoever has it: for the nodes, that one is gone.
    fn is_free(&self) -> bool {
        self.waiters.is_empty() && self.ownership.is_over()
    }

    fn take_over(&mut self, ownership: Arc<Ownership>) -> Seat {
        self.ownership.forfeit();
        self.ownership = Arc::clone(&ownership);
        Seat::new(ownership)
    }

    /// Those who wait, no longer in line.
    fn close(&mut self) -> (Arc<Ownership>, BTreeMap<u64, Arc<Waiter>>) {
        (Arc::clone(&self.ownership), std::mem::take(&mut self.waiters))
    }
}

impl fmt::Debug for LocalQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalQueue").finish_non_exhaustive()
    }
}
