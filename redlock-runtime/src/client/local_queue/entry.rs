//! Local queue of one key: its present call, and the waiting calls.
//!
//! | state | transitions |
//! |---|---|
//! | *absent*: no entry | a call enters, with a new token |
//! | *taken*: one call has the turn | the turn ends: to *taken* by the first waiting call, with the same or a new token; or to *absent* |
//! | *over*: taken, but the lease has ended | the first waiting or next entering call supersedes it: to *taken*, with a new token |
//! | *idle*: the lock is held without a call, see [`idle`](super::idle) | a call enters: to *taken*; or the lock is released: to *ending* |
//! | *ending*: the releases of an idle lock are being sent | they are sent: to *absent*; or a call enters: to *taken* with a new token |
//!
//! The methods of this module make all changes of an entry. They neither send nor wake anything. A call for a shared
//! lock has its own entry, which no other call enters, and so does a permit that returns for votes.

use super::local_waiter::LocalWaiter;
use crate::client::acquisition::{Acquisition, Calls};
use crate::client::watchdog::schedule::{self, Due, Planned};
use crate::time::clock::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Entry of one key that a call of this process holds or wants.
pub(super) struct Entry {
    /// Token with which the process has the key or asks for it.
    acquisition: Arc<Acquisition>,
    /// Waiting calls. Boxed: there are many keys without any.
    line: Option<Box<Line>>,
    standing: Standing,
    /// Number of calls that have reused the idle lock under this token.
    retakes: u32,
    /// Time of the next check by the watchdog. It is stored here because most tokens need no check. Reading it from the
    /// token would cost more than all other work on them.
    planned: Planned,
}

/// Waiting calls, in the order of their arrival.
#[derive(Default)]
struct Line {
    waiters: BTreeMap<u64, Arc<LocalWaiter>>,
    next_place: u64,
}

/// State of the key in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// A call has the turn.
    Taken,
    /// The lock is idle.
    Idle { until: Instant },
    /// The idle lock is being released.
    Ending,
}

/// Error: another call of this process has taken the turn, because the lease had ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superseded;

/// Continuation after the end of a turn.
pub(super) enum Next {
    /// This call continues with the token.
    Passes(Arc<LocalWaiter>, Calls),
    /// The token must be released; then [`Entry::succeed`] returns the next call.
    Releases,
}

impl Entry {
    pub(super) const fn new(acquisition: Arc<Acquisition>, planned: Planned) -> Self {
        Self { acquisition, line: None, standing: Standing::Taken, retakes: 0, planned }
    }

    /// Schedules a check by the watchdog, at the time `planned` or earlier.
    pub(super) fn schedule_check(&mut self, planned: Planned) {
        self.planned = self.planned.or(planned);
    }

    /// Checks the token if a check may be made at `now`, and adds it to `due` if it needs an action. Returns the time
    /// of the next check.
    pub(super) fn look(&mut self, now: Instant, due: &mut Vec<Due>) -> Planned {
        if self.planned.from <= now {
            self.planned = schedule::look(&self.acquisition, now, due);
        }
        self.planned
    }

    /// Returns the token with which the process has the key or asks for it.
    pub(super) const fn acquisition(&self) -> &Arc<Acquisition> {
        &self.acquisition
    }

    /// Returns `true` if the turn belongs to `acquisition`.
    pub(super) fn is_of(&self, acquisition: &Arc<Acquisition>) -> bool {
        Arc::ptr_eq(&self.acquisition, acquisition)
    }

    /// Returns `true` if no call waits.
    pub(super) fn is_alone(&self) -> bool {
        self.line.is_none()
    }

    /// Returns `true` if no call has the turn.
    pub(super) fn is_left(&self) -> bool {
        self.standing != Standing::Taken
    }

    /// Returns `true` if a call holds the lock exclusively or wants it so. A downgraded lock without waiting calls is
    /// not exclusive.
    pub(super) fn blocks_readers(&self) -> bool {
        !self.is_left() && (!self.is_alone() || !self.acquisition.mode().is_shared())
    }

    /// Returns `true` if the lock is being released, and its releases may not have been sent.
    pub(super) fn is_ending(&self) -> bool {
        self.standing == Standing::Ending
    }

    /// Returns the end of the idle time, if the lock is idle.
    pub(super) const fn idle_until(&self) -> Option<Instant> {
        match self.standing {
            Standing::Idle { until } => Some(until),
            Standing::Taken | Standing::Ending => None,
        }
    }

    /// Returns the number of calls that have reused the idle lock under this token.
    pub(super) const fn retakes(&self) -> u32 {
        self.retakes
    }

    /// Makes the lock idle `until` then. No call waits.
    pub(super) const fn leave_idle(&mut self, until: Instant) {
        self.standing = Standing::Idle { until };
    }

    /// Marks an idle lock as being released. Returns the former end of its idle time.
    pub(super) const fn end(&mut self) -> Option<Instant> {
        let until = self.idle_until();
        if until.is_some() {
            self.standing = Standing::Ending;
        }
        until
    }

    /// Gives the idle lock to a call, with the same token.
    pub(super) const fn take(&mut self) {
        (self.standing, self.retakes) = (Standing::Taken, self.retakes.saturating_add(1));
    }

    /// Gives the idle lock to a call, with a new token.
    pub(super) fn take_with(&mut self, acquisition: Arc<Acquisition>) {
        self.standing = Standing::Taken;
        self.go_on_as(acquisition);
    }

    /// Returns `true` if an entering call can take the turn, because the lease of its owner has ended. The returned
    /// calls must be woken after every mutex is free.
    pub(super) fn check_free(&self) -> (bool, Calls) {
        if self.is_alone() { self.acquisition.check_over() } else { (false, Calls::default()) }
    }

    /// Adds a waiting call at the end. Returns its place, and the number of calls before it.
    pub(super) fn join(&mut self, waiter: Arc<LocalWaiter>) -> (u64, usize) {
        let Line { waiters, next_place } = self.line.get_or_insert_default().as_mut();
        let (place, others) = (*next_place, waiters.len());
        *next_place += 1;
        waiters.insert(place, waiter);
        (place, others)
    }

    /// Removes the call of `waiter` from its `place`, if it is still there. The queue may be a new one by now.
    pub(super) fn leave(&mut self, place: u64, waiter: &Arc<LocalWaiter>) {
        if self.line.as_ref().and_then(|line| line.waiters.get(&place)).is_some_and(|other| Arc::ptr_eq(other, waiter))
        {
            self.take_out(|waiters| waiters.remove(&place));
        }
    }

    /// Returns the first waiting call.
    fn first(&self) -> Option<&Arc<LocalWaiter>> {
        self.line.as_ref()?.waiters.values().next()
    }

    /// Removes a waiting call from the queue, which exists only while there are any.
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

    /// Removes the call of `waiter` from the queue, if it is the first and the lease of the present owner has ended.
    /// The returned calls must be woken after every mutex is free.
    pub(super) fn dequeue_if_superseding(&mut self, waiter: &Arc<LocalWaiter>) -> (bool, Calls) {
        if !self.first().is_some_and(|first| Arc::ptr_eq(first, waiter)) {
            return (false, Calls::default());
        }
        let (is_over, calls) = self.acquisition.check_over();
        if is_over {
            self.take_first();
        }
        (is_over, calls)
    }

    /// Gives the turn to `acquisition`, although the previous turn has not ended.
    pub(super) fn supersede(&mut self, acquisition: &Arc<Acquisition>) -> Calls {
        let calls = self.acquisition.supersede();
        self.go_on_as(Arc::clone(acquisition));
        calls
    }

    /// Replaces the token `before` of the present turn by `after`.
    ///
    /// # Errors
    /// [`Superseded`] if another call has the turn.
    pub(super) fn replace(&mut self, before: &Arc<Acquisition>, after: &Arc<Acquisition>) -> Result<(), Superseded> {
        if !self.is_of(before) {
            return Err(Superseded);
        }
        self.go_on_as(Arc::clone(after));
        Ok(())
    }

    /// Decides about the end of a turn, or about a turn that its next call did not take.
    pub(super) fn next(&mut self) -> Next {
        let calls = self.first().and_then(|first| self.acquisition.pass(first.wanted));
        calls.and_then(|calls| Some(Next::Passes(self.take_first()?, calls))).unwrap_or(Next::Releases)
    }

    /// Gives the turn to the first waiting call with a new token, after the old one was released. Returns `None` if no
    /// call waits.
    pub(super) fn succeed(&mut self) -> Option<(Arc<LocalWaiter>, Arc<Acquisition>)> {
        let waiter = self.take_first()?;
        self.go_on_as(Arc::new(self.acquisition.successor(waiter.wanted.ttl)));
        Some((waiter, Arc::clone(&self.acquisition)))
    }

    /// Changes the token of the process for the key.
    fn go_on_as(&mut self, acquisition: Arc<Acquisition>) {
        if !self.is_alone() {
            acquisition.set_followed();
        }
        (self.acquisition, self.retakes) = (acquisition, 0);
    }

    /// Removes and returns all waiting calls.
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
