//! Calls of one process for the same key stand in a line in memory; the first of them represents the process at the
//! nodes.
//!
//! An entry exists only while somebody holds the key or waits for it.

mod seat;
#[cfg(test)]
mod tests;
mod ticket;

pub(crate) use self::seat::Seat;
use self::ticket::Waiter;
pub(crate) use self::ticket::{Ended, Ticket};
use crate::key::LockKey;
use crate::ownership::Ownership;
use crate::shared::Core;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// More than there are cores, so that calls for different keys rarely meet.
const SHARDS: usize = 64;

/// All the lines of one manager, by the name of the key in Redis.
pub(crate) struct LocalQueue {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
}

type Shard = HashMap<Arc<str>, Entry>;

/// One key that somebody here holds or wants. Whoever has its [`Seat`] sees to it that it is removed.
struct Entry {
    /// The token with which the process has the key or asks for it.
    ownership: Arc<Ownership>,
    waiters: BTreeMap<u64, Arc<Waiter>>,
    next_place: u64,
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
        Self { shards, hasher: RandomState::new() }
    }

    /// Takes the seat for `key`, or a place behind whoever has it when `waits`.
    pub(crate) fn enter(core: &Arc<Core>, key: &LockKey, ttl: Duration, waits: bool) -> Entered {
        let mut shard = core.local.shard(key.name());
        let first = || Arc::new(Ownership::new(core, key, core.new_token(), ttl));
        let Some(entry) = shard.get_mut(key.name()) else {
            let ownership = first();
            shard.insert(key.shared_name(), Entry::new(Arc::clone(&ownership)));
            return Entered::First(Seat::new(ownership));
        };
        if entry.is_free() {
            return Entered::First(entry.take_over(first()));
        }
        if !waits {
            return Entered::Taken;
        }
        let place = entry.next_place;
        entry.next_place += 1;
        let waiter = Arc::new(Waiter::new(ttl));
        entry.waiters.insert(place, Arc::clone(&waiter));
        Entered::Behind(Ticket::new(core, key, place, waiter))
    }

    /// When whoever waits for `key` should look whether the lease of the holder has run out, as it does when a guard is
    /// never dropped.
    pub(crate) fn lease_left(&self, key: &LockKey) -> Option<Duration> {
        self.ownership(key.name())?.lease_left()
    }

    /// The token of this process for the key that is called `name` in Redis.
    pub(crate) fn ownership(&self, name: &str) -> Option<Arc<Ownership>> {
        Some(Arc::clone(&self.shard(name).get(name)?.ownership))
    }

    /// Ends every wait in every line, and leaves the queues of the nodes.
    pub(crate) fn close(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let closed: Vec<_> = shard.values_mut().map(Entry::close).collect();
            drop(shard);
            for (ownership, waiters) in closed {
                for waiter in waiters.into_values() {
                    waiter.close();
                }
                if ownership.is_waiting() {
                    ownership.give_back();
                }
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

impl Entry {
    const fn new(ownership: Arc<Ownership>) -> Self {
        Self { ownership, waiters: BTreeMap::new(), next_place: 0 }
    }

    /// Whether the seat can be taken from whoever has it: for the nodes, that one is gone.
    fn is_free(&self) -> bool {
        self.waiters.is_empty() && self.ownership.is_over()
    }

    fn take_over(&mut self, ownership: Arc<Ownership>) -> Seat {
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
