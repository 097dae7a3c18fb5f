//! The line of one key: who has it here, and who waits.
//!
//! | state | how it is left |
//! |---|---|
//! | *nobody*: there is no entry | a call enters, with a new token |
//! | *taken*: one call has the turn | the turn ends: to *nobody* if no call waits, else to *taken* by the first that waits, with the same token or a new one |
//! | *over*: the turn is taken, and its lease has run out | the first that waits supersedes it, or the next to enter when nobody waits: to *taken*, with a new token |
//! | *idle*: the lock is held without a call, see [`idle`](super::idle) | a call enters, to *taken*; or it is given back, to *ending* |
//! | *ending*: the releases of an idle lock are being sent | they are sent, to *nobody*; or a call enters, to *taken* with a new token |
//!
//! All changes of an entry are made here, by methods that neither send nor wake anything. A call that shares
//! its lock with others stands in a line of its own, where no other call comes, and so does a permit that comes back for votes.

use super::local_waiter::LocalWaiter;
use crate::client::acquisition::{Acquisition, Calls};
use crate::client::watchdog::schedule::{self, Due, Planned};
use crate::time::clock::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One key that somebody here holds or wants.
pub(super) struct Entry {
    /// The token with which the process has the key or asks for it.
    acquisition: Arc<Acquisition>,
    /// Those who wait. Boxed: there are many keys for which nobody does.
    line: Option<Box<Line>>,
    standing: Standing,
    /// How often calls have taken the lock over that was idle under this token.
    retakes: u32,
    /// When the watchdog should look at the token. It stands here because most tokens need no look, and to read it there would
    /// cost more than all else that is done about them.
    planned: Planned,
}

/// Those who wait, in the order in which they came.
#[derive(Default)]
struct Line {
    waiters: BTreeMap<u64, Arc<LocalWaiter>>,
    next_place: u64,
}

/// Who has what stands in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// A call has the turn.
    Taken,
    /// Nobody has the lock, which is among the idle ones until then.
    Idle { until: Instant },
    /// Nobody has the lock, which is being given back.
    Ending,
}

/// Another call of this process has the turn, because the lease had run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superseded;

/// Who is next when a turn ends.
pub(super) enum Next {
    /// This call, which goes on with the token.
    Passes(Arc<LocalWaiter>, Calls),
    /// The token is to be released, and then [`Entry::succeed`] says who is next.
    Releases,
}

impl Entry {
    pub(super) const fn new(acquisition: Arc<Acquisition>, planned: Planned) -> Self {
        Self { acquisition, line: None, standing: Standing::Taken, retakes: 0, planned }
    }

    /// The watchdog should look at the token as is `planned`, or before.
    pub(super) fn look_by(&mut self, planned: Planned) {
        self.planned = self.planned.or(planned);
    }

    /// Looks at the token if that may be done at `now`, and puts it to those that are `due` if it is. Returns when to look the
    /// next time.
    pub(super) fn look(&mut self, now: Instant, due: &mut Vec<Due>) -> Planned {
        if self.planned.from <= now {
            self.planned = schedule::look(&self.acquisition, now, due);
        }
        self.planned
    }

    /// The token with which the process has the key or asks for it.
    pub(super) const fn acquisition(&self) -> &Arc<Acquisition> {
        &self.acquisition
    }

    /// Whether the turn is that of `acquisition`.
    pub(super) fn is_of(&self, acquisition: &Arc<Acquisition>) -> bool {
        Arc::ptr_eq(&self.acquisition, acquisition)
    }

    /// Whether nobody waits in line.
    pub(super) fn is_alone(&self) -> bool {
        self.line.is_none()
    }

    /// Whether no call has the turn.
    pub(super) fn is_left(&self) -> bool {
        self.standing != Standing::Taken
    }

    /// Whether a call has the lock alone or wants it so: not one that has gone on as a reader since, with nobody behind it.
    pub(super) fn is_in_the_way_of_readers(&self) -> bool {
        !self.is_left() && (!self.is_alone() || !self.acquisition.mode().is_shared())
    }

    /// Whether the lock is being given back, and its releases may not have been sent.
    pub(super) fn is_ending(&self) -> bool {
        self.standing == Standing::Ending
    }

    /// Until when the lock is idle, if it is.
    pub(super) const fn idle_until(&self) -> Option<Instant> {
        match self.standing {
            Standing::Idle { until } => Some(until),
            Standing::Taken | Standing::Ending => None,
        }
    }

    /// How often calls have taken the lock over that was idle under this token.
    pub(super) const fn retakes(&self) -> u32 {
        self.retakes
    }

    /// The lock is idle from now on `until` then, and nobody waits.
    pub(super) const fn leave_idle(&mut self, until: Instant) {
        self.standing = Standing::Idle { until };
    }

    /// The lock, if it is idle, is being given back from now on. Returns until when it would have been.
    pub(super) const fn end(&mut self) -> Option<Instant> {
        let until = self.idle_until();
        if until.is_some() {
            self.standing = Standing::Ending;
        }
        until
    }

    /// A call has the turn of a lock that was left, with the same token.
    pub(super) const fn take(&mut self) {
        (self.standing, self.retakes) = (Standing::Taken, self.retakes.saturating_add(1));
    }

    /// A call has the turn of a lock that was left, with a token of its own.
    pub(super) fn take_with(&mut self, acquisition: Arc<Acquisition>) {
        self.standing = Standing::Taken;
        self.go_on_as(acquisition);
    }

    /// Whether a call that enters can take the turn from whoever has it: for the nodes, that one is gone. Others may have to
    /// be woken when no mutex is held any more.
    pub(super) fn is_free(&self) -> (bool, Calls) {
        if self.is_alone() { self.acquisition.is_over() } else { (false, Calls::default()) }
    }

    /// Takes a place at the end of the line. Returns its number, and how many are before it.
    pub(super) fn join(&mut self, waiter: Arc<LocalWaiter>) -> (u64, usize) {
        let Line { waiters, next_place } = self.line.get_or_insert_default().as_mut();
        let (place, others) = (*next_place, waiters.len());
        *next_place += 1;
        waiters.insert(place, waiter);
        (place, others)
    }

    /// The call of `waiter` leaves its `place` in the line, if it still has that: the line may be another one by now.
    pub(super) fn leave(&mut self, place: u64, waiter: &Arc<LocalWaiter>) {
        if self.line.as_ref().and_then(|line| line.waiters.get(&place)).is_some_and(|other| Arc::ptr_eq(other, waiter))
        {
            self.take_out(|waiters| waiters.remove(&place));
        }
    }

    /// Who waits first.
    fn first(&self) -> Option<&Arc<LocalWaiter>> {
        self.line.as_ref()?.waiters.values().next()
    }

    /// Takes one of those who wait out of the line, which is kept only while there are any.
    fn take_out(
        &mut self,
        take: impl FnOnce(&mut BTreeMap<u64, Arc<LocalWaiter>>) -> Option<Arc<LocalWaiter>>,
    ) -> Option<Arc<LocalWaiter>> {
        let line = self.line.as_mut()?;
        let waiter = take(&mut line.waiters);
        if line.waiters.is_empty() {
            self.line = None;
        }
        waiter
    }

    fn take_first(&mut self) -> Option<Arc<LocalWaiter>> {
        self.take_out(|waiters| Some(waiters.pop_first()?.1))
    }

    /// Takes the call of `waiter` out of the line, if it is the first and the lease of whoever has the turn has run out.
    /// Others may have to be woken when no mutex is held any more.
    pub(super) fn leave_to_supersede(&mut self, waiter: &Arc<LocalWaiter>) -> (bool, Calls) {
        if !self.first().is_some_and(|first| Arc::ptr_eq(first, waiter)) {
            return (false, Calls::default());
        }
        let (is_over, calls) = self.acquisition.is_over();
        if is_over {
            self.take_first();
        }
        (is_over, calls)
    }

    /// The turn is that of `acquisition` from now on, although the one before has not ended.
    pub(super) fn supersede(&mut self, acquisition: &Arc<Acquisition>) -> Calls {
        let calls = self.acquisition.supersede();
        self.go_on_as(Arc::clone(acquisition));
        calls
    }

    /// Whoever has the turn as `before` goes on as `after`.
    ///
    /// # Errors
    /// [`Superseded`] when another call has the turn.
    pub(super) fn replace(&mut self, before: &Arc<Acquisition>, after: &Arc<Acquisition>) -> Result<(), Superseded> {
        if !self.is_of(before) {
            return Err(Superseded);
        }
        self.go_on_as(Arc::clone(after));
        Ok(())
    }

    /// The turn ends, or was not taken by whom it was passed to.
    pub(super) fn next(&mut self) -> Next {
        let calls = self.first().and_then(|first| self.acquisition.pass(first.wanted));
        calls.and_then(|calls| Some(Next::Passes(self.take_first()?, calls))).unwrap_or(Next::Releases)
    }

    /// The token was released: the first call in line has the turn, with a new one. `None` when no call waits.
    pub(super) fn succeed(&mut self) -> Option<(Arc<LocalWaiter>, Arc<Acquisition>)> {
        let waiter = self.take_first()?;
        self.go_on_as(Arc::new(self.acquisition.successor(waiter.wanted.ttl)));
        Some((waiter, Arc::clone(&self.acquisition)))
    }

    /// The process has the key by another token from now on.
    fn go_on_as(&mut self, acquisition: Arc<Acquisition>) {
        (self.acquisition, self.retakes) = (acquisition, 0);
    }

    /// Those who wait, no longer in line.
    pub(super) fn close(&mut self) -> (Arc<Acquisition>, Vec<Arc<LocalWaiter>>) {
        (
            Arc::clone(&self.acquisition),
            self.line.take().map_or_else(Vec::new, |line| line.waiters.into_values().collect()),
        )
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.waiters.len())
    }
}
