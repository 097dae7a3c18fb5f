//! Entry of a call into the local queue of a key.

use super::LocalQueue;
use super::entry::{Entry, Superseded};
use super::local_owner::LocalOwner;
use super::local_wait::LocalWait;
use super::local_waiter::LocalWaiter;
use crate::client::acquisition::Acquisition;
use crate::client::watchdog::schedule::Planned;
use crate::lock::parts::Parts;
use crate::lock::{LockKey, Mode};
use crate::protocol::candidate::Wanted;
use crate::time::clock::Instant;
use std::sync::Arc;

/// Outcome of entering.
pub(crate) enum Entered {
    First(LocalOwner),
    Behind(LocalWait),
    /// Another call of this process has the key, and the caller does not wait.
    Taken,
}

impl LocalQueue {
    /// Creates a separate local turn for `parts` in this `mode`, because other calls may have the lock as well, or
    /// because it has several names.
    pub(crate) fn enter_unqueued(
        self: &Arc<Self>,
        (parts, mode): (&Parts, Mode),
        wanted: Wanted,
        now: Instant,
    ) -> LocalOwner {
        for part in parts.iter() {
            // The nodes would refuse the call until the manager of the idle lock is notified.
            self.end_idle(part.name());
        }
        self.enter_with(Arc::new(Acquisition::of_parts(&self.shared, (parts, mode), wanted.ttl, now)), wanted, now)
    }

    /// Creates a separate local turn for the given token.
    pub(super) fn enter_with(
        self: &Arc<Self>,
        acquisition: Arc<Acquisition>,
        wanted: Wanted,
        now: Instant,
    ) -> LocalOwner {
        let (line, planned) = (acquisition.line(), Planned::first(wanted.ttl, now));
        let mut shard = self.shard(&line);
        shard.entries.insert((&*line).into(), Entry::new(Arc::clone(&acquisition), planned));
        shard.schedule_check(&line, planned);
        drop(shard);
        LocalOwner::new(self, acquisition)
    }

    /// Replaces `before` by `after` in its entry. A token of a shared lock has an entry under its own name.
    ///
    /// # Errors
    /// [`Superseded`] if another call has the turn.
    pub(super) fn go_on_as(&self, before: &Arc<Acquisition>, after: &Arc<Acquisition>) -> Result<(), Superseded> {
        let (line, next) = (before.line(), after.line());
        let mut shard = self.shard(&line);
        if line == next {
            return shard.entries.get_mut(&*line).ok_or(Superseded)?.replace(before, after);
        }
        let mut entry = shard.entries.remove(&*line).ok_or(Superseded)?;
        drop(shard);
        entry.replace(before, after)?;
        let mut shard = self.shard(&next);
        shard.entries.insert((&*next).into(), entry);
        shard.schedule_check(&next, Planned::at(self.shared.clock.now()));
        Ok(())
    }

    /// Takes the turn for `key`. If another call has it and the caller `waits`, joins the local queue.
    pub(crate) fn enter(self: &Arc<Self>, key: &LockKey, wanted: Wanted, waits: bool, now: Instant) -> Entered {
        let first = || Arc::new(Acquisition::of_key(&self.shared, key, wanted.ttl, now));
        // Declared before the shard, so that the calls are woken after its mutex is free.
        let (is_free, _seen, _superseded);
        let mut shard = self.shard(key.name());
        let planned = Planned::first(wanted.ttl, now);
        shard.schedule_check(key.name(), planned);
        let Some(entry) = shard.entries.get_mut(key.name()) else {
            let acquisition = first();
            shard.entries.insert(key.shared_name(), Entry::new(Arc::clone(&acquisition), planned));
            return Entered::First(LocalOwner::new(self, acquisition));
        };
        if entry.is_left() {
            if let Some((turn, before)) = self.take_idle(&mut shard, first, key, wanted, now) {
                drop(shard);
                // Released before this call asks any node. If another thread has begun to send the releases, it has
                // sent them when this returns.
                if let Some(before) = before {
                    before.release();
                }
                return Entered::First(turn);
            }
            return Entered::Taken;
        }
        (is_free, _seen) = entry.check_free();
        if is_free {
            let acquisition = first();
            _superseded = entry.supersede(&acquisition);
            return Entered::First(LocalOwner::new(self, acquisition));
        }
        if !waits {
            return Entered::Taken;
        }
        let waiter = Arc::new(LocalWaiter::new(wanted));
        let place = entry.join(Arc::clone(&waiter));
        let (_, others) = place;
        if others == 0 {
            let acquisition = Arc::clone(entry.acquisition());
            drop(shard);
            acquisition.set_followed();
        }
        Entered::Behind(LocalWait::new(self, key, place, waiter))
    }
}
