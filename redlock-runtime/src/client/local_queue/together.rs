//! Calls of one process that share the lock of a key by one token, which saves the commands of all but the first.
//!
//! | state | how it is left |
//! |---|---|
//! | *nobody*: there is no entry | a call comes that waits for holders, and *founds* a token: to *gathering*; or one has its lock, to *joined* |
//! | *gathering*: one call asks the nodes, and those that come meanwhile wait for what it gets | it has the lock, to *joined* with all of them; it goes, and the next goes on with its place; the nodes do not answer, or it takes too long, and each goes alone, to *nobody* |
//! | *joined*: calls have the lock, and others may join | the last one leaves, to *nobody*; a call may not join any more, to *gathering* for another token |
//!
//! A call for which others have waited in vain goes on by itself, and what stands here is none of its business any more.
//!
//! A token that nobody may join any more is not known here, and ends with the last of its calls. A call that is not to wait
//! for others, or wants what a token cannot give, takes one of its own beside all this ([`enter_beside`](LocalQueue)).

#[cfg(test)]
mod tests;

use super::entry::Entry;
use super::local_turn::{LocalTurn, Role};
use super::member::Member;
use super::reader::{Reader, Told};
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

/// For so long a call waits at most for what another one of its process gets, and then nobody does: the task of that one may not
/// be polled. Smaller, and readers behind a writer that takes its time ask the nodes each for itself; larger, and they wait longer
/// for nothing.
pub(crate) const LONGEST_GATHERING: Duration = Duration::from_secs(2);

/// Where a call finds itself that may share its token.
pub(crate) enum Together {
    /// It has the lock.
    Joined(Member),
    /// It waits for what another call gets.
    Behind(ReaderWait),
    /// It asks the nodes.
    Asks(LocalTurn),
}

impl LocalQueue {
    /// A share of the lock of `key`: with those who have it, behind the call that asks for it, or by a token of its own. Only who
    /// `gathers` waits for another call, and lets others wait for it.
    pub(crate) fn enter_together(
        self: &Arc<Self>,
        key: &LockKey,
        wanted: Wanted,
        gathers: bool,
        now: Instant,
    ) -> Together {
        // Before the shard, so that they are woken and dropped after it.
        let (_calls, _sealed, number);
        let mut shard = self.shard(key.name());
        let is_wanted_here = shard.entries.get(key.name()).is_some_and(Entry::is_in_the_way_of_readers);
        match shard.readers.get_mut(key.name()) {
            // A writer of this process is not overtaken at all: it is known at once.
            Some(Readers::Joined(acquisition)) if !is_wanted_here => {
                (number, _calls) = acquisition.join(wanted, now);
                if let Some(number) = number {
                    // The turn of a token that has members has not ended.
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
        let acquisition = Arc::new(Acquisition::of_parts(&self.shared, &parts, wanted.ttl, now));
        if founds {
            let (acquisition, waiting) = (Arc::clone(&acquisition), VecDeque::new());
            let gathering = Readers::Gathering { since: now, acquisition, ttl: wanted.ttl, waiting };
            _sealed = shard.readers.insert(key.shared_name(), gathering);
        }
        drop(shard);
        // The nodes would keep it from the call until whoever has left it idle hears of that.
        self.end_idle(key.name());
        let mut turn = self.enter_with(acquisition, wanted, now);
        if founds {
            turn.role = Role::Founds;
        }
        Together::Asks(turn)
    }

    /// The call of `turn` has obtained the lock, and so have those that wait for it; others may join. By `site` it counts.
    pub(crate) fn open_to_readers(self: &Arc<Self>, mut turn: LocalTurn, site: SiteId, now: Instant) -> Member {
        let (acquisition, number) = turn.shared();
        let first = Member::new(self, &acquisition, number, acquisition.open(site, now));
        turn.role = Role::LeftToMembers;
        let key = acquisition.key();
        let mut shard = self.shard(key.name());
        // Others have another token, or wait for one: also those that have waited too long for this one.
        if shard.readers.get(key.name()).is_some_and(|readers| !readers.gathers_as(&acquisition)) {
            return first;
        }
        let before = shard.readers.insert(key.shared_name(), Readers::Joined(Arc::clone(&acquisition)));
        drop(shard);
        // Who joins goes before those who wait elsewhere: so nobody does before they can be heard.
        self.shared.listen();
        for reader in before.map(|mut before| before.close()).unwrap_or_default() {
            reader.tell(|| match acquisition.admit(now) {
                Some(other) => Told::Joined(Arc::clone(&acquisition), number, other),
                None => Told::Alone,
            });
        }
        first
    }

    /// The call goes on with the token `after` that has asked with the one `before`, if others still wait for it.
    pub(super) fn founds_as(&self, before: &Arc<Acquisition>, after: &Arc<Acquisition>) {
        let _before;
        let name = before.key().name();
        if let Some(Readers::Gathering { acquisition: ours, .. }) = self.shard(name).readers.get_mut(name)
            && Arc::ptr_eq(ours, before)
        {
            _before = std::mem::replace(ours, Arc::clone(after));
        }
    }

    /// The call of `reader` has waited for long enough. Returns all who wait together with it if it has been for too long by
    /// `now`, and those no longer do.
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

    /// The call goes that asks for the lock with `acquisition`, and others wait for it. The next of them goes on in its place,
    /// if it has one; otherwise those who wait are returned.
    pub(super) fn next_founder(
        self: &Arc<Self>,
        acquisition: &Arc<Acquisition>,
        turn: u32,
    ) -> Option<VecDeque<Arc<Reader>>> {
        let name = acquisition.key().name();
        let has_place = acquisition.is_waiting() && acquisition.is_heard() && !self.shared.is_closed();
        loop {
            let mut shard = self.shard(name);
            let next = match shard.readers.get_mut(name).filter(|readers| readers.gathers_as(acquisition)) {
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
            if next.tell(|| Told::Founds(Arc::clone(acquisition), turn)) {
                return None;
            }
        }
    }

    /// All calls that had the lock by the token of `acquisition` have left.
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

    /// What the call is about that those wait for who want to share the lock of `key`.
    pub(crate) fn gathered_by(&self, key: &LockKey) -> Option<Arc<Acquisition>> {
        match self.shard(key.name()).readers.get(key.name())? {
            Readers::Gathering { acquisition, .. } => Some(Arc::clone(acquisition)),
            Readers::Joined(_) => None,
        }
    }

    /// The call of `reader` does not wait any more.
    pub(super) fn forget_reader(&self, key: &LockKey, reader: &Arc<Reader>) {
        if let Some(Readers::Gathering { waiting, .. }) = self.shard(key.name()).readers.get_mut(key.name()) {
            waiting.retain(|other| !Arc::ptr_eq(other, reader));
        }
    }
}

impl Shard {
    /// Nobody shares the lock of the key called `name` by a token that others may join, or waits to.
    fn forget_readers(&mut self, name: &str) -> Option<Readers> {
        let forgotten = self.readers.remove(name);
        shrink(&mut self.readers);
        forgotten
    }
}
