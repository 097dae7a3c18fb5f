//! Calls of one process that share the lock of a key under one token, which saves the commands of all calls but the
//! first.
//!
//! - *absent*: no entry exists. If a call arrives that waits for holders, it *founds* a token: to *gathering*. If such
//!   a call already has its lock: to *joined*.
//! - *gathering*: one call asks the nodes, and later calls wait for its result. If it gets the lock: to *joined*, with
//!   all of them. If it ends, the next call takes its place. If the nodes do not answer, or it takes too long, each
//!   call continues alone: to *absent*.
//! - *joined*: calls share the lock, and others may join. If the last one leaves: to *absent*. If a call may not join
//!   any longer: to *gathering* for another token.
//!
//! If the waiting calls have given up on a call, it continues alone and does not change this entry.
//!
//! A token that no call may join any longer is not stored here, and ends with the last of its calls. Some calls must
//! not wait for others, or need their own token. They take a separate token ([`enter_unqueued`](LocalQueue)).

#[cfg(test)]
mod tests;

use super::entry::Entry;
use super::local_owner::{LocalOwner, Role};
use super::member::Member;
use super::reader::{Handoff, Reader};
use super::reader_wait::ReaderWait;
use super::readers::Readers;
use super::{LocalQueue, Shard, shrink};
use crate::client::acquisition::Acquisition;
use crate::lock::parts::Parts;
use crate::lock::{LockKey, Mode};
use crate::protocol::candidate::Wanted;
use crate::stats::SiteId;
use crate::time::clock::Instant;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait of a call for the result of another call. After it, all waits for that call end, because its task may
/// not be polled. Smaller: readers behind a slow writer ask the nodes individually. Larger: they wait longer without
/// benefit.
pub(crate) const LONGEST_GATHERING: Duration = Duration::from_secs(2);

/// Outcome for a call that may share its token.
pub(crate) enum Together {
    /// The call shares the lock.
    Joined(Member),
    /// The call waits for the result of another call.
    Behind(ReaderWait),
    /// The call asks the nodes.
    Asks(LocalOwner),
}

impl LocalQueue {
    /// Returns a share of the lock of `key`: with its present users, behind the call that asks for it, or with a new
    /// token. Only a call that `gathers` waits for another call, and lets others wait for it.
    pub(crate) fn enter_together(
        self: &Arc<Self>,
        key: &LockKey,
        wanted: Wanted,
        gathers: bool,
        now: Instant,
    ) -> Together {
        // Declared before the shard, so that the calls are woken and dropped after its mutex is free.
        let (_calls, _sealed, number);
        let mut shard = self.shard(key.name());
        let is_wanted_here = shard.entries.get(key.name()).is_some_and(Entry::blocks_readers);
        match shard.readers.get_mut(key.name()) {
            // No call overtakes a writer of this process, because that is known at once.
            Some(Readers::Joined(acquisition)) if !is_wanted_here => {
                (number, _calls) = acquisition.join(wanted, now);
                if let Some(number) = number {
                    // The turn of a token with members has not ended.
                    let member = Member::new(self, acquisition, acquisition.turn(), number);
                    return Together::Joined(member);
                }
            }
            Some(Readers::Gathering { ttl, waiting, .. }) if gathers && *ttl == wanted.ttl => {
                let reader = Arc::new(Reader::new());
                waiting.push_back(Arc::clone(&reader));
                return Together::Behind(ReaderWait::new(self, key, reader));
            }
            Some(_) | None => {}
        }
        let is_gathering = matches!(shard.readers.get(key.name()), Some(Readers::Gathering { .. }));
        let founds = gathers && !is_gathering;
        let parts = Parts::single(key.clone(), Mode::Shared);
        let acquisition = Arc::new(Acquisition::of_parts(&self.shared, (&parts, Mode::Shared), wanted.ttl, now));
        if founds {
            let (acquisition, waiting) = (Arc::clone(&acquisition), VecDeque::new());
            let gathering = Readers::Gathering { since: now, acquisition, ttl: wanted.ttl, waiting };
            _sealed = shard.readers.insert(key.shared_name(), gathering);
        }
        drop(shard);
        // The nodes would refuse the call until the manager of the idle lock is notified.
        self.end_idle(key.name());
        let mut turn = self.enter_with(acquisition, wanted, now);
        if founds {
            turn.role = Role::Founds;
        }
        Together::Asks(turn)
    }

    /// Shares the acquired lock of `turn` with the waiting calls, and lets others join. It is counted for `site`.
    pub(crate) fn open_to_readers(self: &Arc<Self>, mut turn: LocalOwner, site: SiteId, now: Instant) -> Member {
        let (acquisition, number) = turn.shared();
        let first = Member::new(self, &acquisition, number, acquisition.open(site, now));
        turn.role = Role::LeftToMembers;
        let key = acquisition.key();
        let mut shard = self.shard(key.name());
        // Other calls have another token, or wait for one, even calls that have given up on this one.
        if shard.readers.get(key.name()).is_some_and(|readers| !readers.is_gathering_for(&acquisition)) {
            return first;
        }
        let before = shard.readers.insert(key.shared_name(), Readers::Joined(Arc::clone(&acquisition)));
        drop(shard);
        // Joining calls overtake waiters elsewhere, so the process must first be able to receive their notifications.
        self.shared.listen();
        for reader in before.map(|mut before| before.close()).unwrap_or_default() {
            reader.tell(|| match acquisition.admit(now) {
                Some(other) => Handoff::Joined(Arc::clone(&acquisition), number, other),
                None => Handoff::Alone,
            });
        }
        first
    }

    /// Records that the asking call continues with the token `after` instead of `before`, if others still wait for it.
    pub(super) fn replace_gathering_token(&self, before: &Arc<Acquisition>, after: &Arc<Acquisition>) {
        let _before;
        let name = before.key().name();
        if let Some(Readers::Gathering { acquisition: ours, .. }) = self.shard(name).readers.get_mut(name)
            && Arc::ptr_eq(ours, before)
        {
            _before = std::mem::replace(ours, Arc::clone(after));
        }
    }

    /// Ends the wait of `reader`. If the gathering has lasted too long at `now`, ends it and returns all calls that
    /// wait.
    pub(super) fn end_gathering(&self, key: &LockKey, reader: &Arc<Reader>, now: Instant) -> VecDeque<Arc<Reader>> {
        let mut shard = self.shard(key.name());
        let Some(Readers::Gathering { since, waiting, .. }) = shard.readers.get_mut(key.name()) else {
            return VecDeque::new();
        };
        if !waiting.iter().any(|other| Arc::ptr_eq(other, reader)) {
            return VecDeque::new();
        }
        if now.since(*since) < LONGEST_GATHERING {
            waiting.retain(|other| !Arc::ptr_eq(other, reader));
            return VecDeque::new();
        }
        let ended = shard.forget_readers(key.name());
        drop(shard);
        ended.map(|mut ended| ended.close()).unwrap_or_default()
    }

    /// Handles the end of a call that asks for the lock with `acquisition`, while others wait for it. If it has a place
    /// in the queues, the next of them takes over. Otherwise, returns the waiting calls.
    pub(super) fn next_leader(
        self: &Arc<Self>,
        acquisition: &Arc<Acquisition>,
        turn: u32,
    ) -> Option<VecDeque<Arc<Reader>>> {
        let name = acquisition.key().name();
        let has_place = acquisition.is_waiting() && acquisition.is_heard() && !self.shared.is_closed();
        loop {
            let mut shard = self.shard(name);
            let next = match shard.readers.get_mut(name).filter(|readers| readers.is_gathering_for(acquisition)) {
                Some(Readers::Gathering { waiting, .. }) if has_place => waiting.pop_front(),
                Some(_) => None,
                None => return Some(VecDeque::new()),
            };
            let Some(next) = next else {
                let left = shard.forget_readers(name);
                drop(shard);
                return Some(left.map(|mut left| left.close()).unwrap_or_default());
            };
            drop(shard);
            if next.tell(|| Handoff::Founds(Arc::clone(acquisition), turn)) {
                return None;
            }
        }
    }

    /// Records that all calls with the token of `acquisition` have left.
    pub(super) fn close_to_readers(&self, acquisition: &Arc<Acquisition>) {
        let _before;
        let name = acquisition.key().name();
        let mut shard = self.shard(name);
        let is_it = matches!(shard.readers.get(name), Some(Readers::Joined(ours)) if Arc::ptr_eq(ours, acquisition));
        if is_it {
            _before = shard.forget_readers(name);
        }
        drop(shard);
    }

    /// Returns the token of the call whose result the readers of `key` wait for.
    pub(crate) fn gathering_acquisition(&self, key: &LockKey) -> Option<Arc<Acquisition>> {
        match self.shard(key.name()).readers.get(key.name())? {
            Readers::Gathering { acquisition, .. } => Some(Arc::clone(acquisition)),
            Readers::Joined(_) => None,
        }
    }

    /// Removes the waiting call of `reader`.
    pub(super) fn forget_reader(&self, key: &LockKey, reader: &Arc<Reader>) {
        if let Some(Readers::Gathering { waiting, .. }) = self.shard(key.name()).readers.get_mut(key.name()) {
            waiting.retain(|other| !Arc::ptr_eq(other, reader));
        }
    }
}

impl Shard {
    /// Removes the entry of the shared lock called `name`.
    fn forget_readers(&mut self, name: &str) -> Option<Readers> {
        let forgotten = self.readers.remove(name);
        shrink(&mut self.readers);
        forgotten
    }
}
