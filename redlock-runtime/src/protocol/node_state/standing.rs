//! Conflicts between the token of a command and the holders and waiters of one name.

use super::queue::Line;
use super::readers::Readers;
use super::{Execution, Queue};
use crate::lock::OwnerToken;
use crate::lock::class::Class;
use crate::protocol::command::Notice;
use crate::protocol::rules::Rule;
use crate::protocol::timing::RESERVED;
use crate::time::clock::Instant;
use std::time::Duration;

/// Maximum number of readers that are notified of a waiter at once. Smaller: more readers are notified only at the next
/// call of the waiter. Larger: the server is busy for longer.
pub(crate) const MOST_TOLD: usize = 64;

impl Execution<'_> {
    /// Returns the line in which the token waits for the name.
    pub(super) const fn line(&self) -> Line {
        Line::new(self.class, self.has_several)
    }

    pub(super) fn readers(&self) -> Option<&Readers> {
        self.state.readers.get(self.key.name())
    }

    /// Returns the class in which a token shares the name, if it does.
    pub(super) fn share_of(&self, token: OwnerToken) -> Option<Class> {
        self.readers()?.held_by(token, self.now).map(|(class, _)| class)
    }

    pub(super) fn has_share(&self, token: OwnerToken) -> bool {
        self.share_of(token).is_some()
    }

    fn share_end(&self, token: OwnerToken) -> Option<Instant> {
        self.readers()?.end_of(token, self.now)
    }

    /// Returns the class in which a token has the name, if it does.
    pub(super) fn hold_of(&self, token: OwnerToken) -> Option<Class> {
        let is_owner = self.owner() == Some(token);
        if is_owner { Some(Class::Exclusive) } else { self.share_of(token) }
    }

    /// Returns `true` if the token has the name in any class.
    pub(super) fn holds(&self) -> bool {
        self.hold_of(self.token).is_some()
    }

    /// Returns `true` if the class in which a token has the name covers the wanted class.
    pub(super) fn covers_part(&self, token: OwnerToken) -> bool {
        self.hold_of(token).is_some_and(|held| held.covers(self.class))
    }

    /// Returns `true` if other tokens have the name in a class that conflicts with the token.
    pub(super) fn is_held_against(&self) -> bool {
        self.is_taken_from(self.token, self.class)
    }

    /// Returns `true` if tokens other than `token` have the name in a class that conflicts with `class`.
    pub(super) fn is_taken_from(&self, token: OwnerToken, class: Class) -> bool {
        let others = |readers: &Readers| readers.live_against(class, self.now).iter().any(|other| *other != token);
        let is_kept_out = !class.is_intent() || self.applies(Rule::IntentsKeepOut);
        is_kept_out && (self.owner().is_some_and(|owner| owner != token) || self.readers().is_some_and(others))
    }

    /// Returns `true` if an earlier conflicting token waits.
    pub(super) fn is_behind_others(&self) -> bool {
        self.is_behind(self.token, self.class)
            && (self.class == Class::Exclusive || self.applies(Rule::WaitersComeFirst))
    }

    /// Returns `true` if a token that conflicts with `class` waits before `token`.
    pub(super) fn is_behind(&self, token: OwnerToken, class: Class) -> bool {
        self.queue().and_then(|queue| queue.first_against(class)).is_some_and(|first| first < token)
    }

    /// Puts the token into the queue. Returns `true` if it was not in the queue before.
    ///
    /// The sign of life is left out while all holders and waiters want the lock exclusively, as then no command would
    /// read it. [`Queue::check_silence`] adds it later.
    pub(super) fn join_queue(&mut self) -> bool {
        let (token, line, now) = (self.token, self.line(), self.now);
        let is_heard = self.concerns_readers();
        let queue = self.state.queues.entry(self.key.name().into()).or_insert_with(|| Queue::new(now));
        if is_heard { queue.join(token, line, now) } else { queue.add(token, now) }
    }

    /// Returns `true` if a holder shares the lock, or any token wants to share it or several names.
    fn concerns_readers(&self) -> bool {
        self.line() != Line::ALONE || self.readers().is_some() || self.queue().is_some_and(Queue::concerns_readers)
    }

    pub(super) fn strike(&mut self, token: OwnerToken) {
        if let Some(queue) = self.queue_mut() {
            queue.remove(token);
        }
    }

    /// Returns `true` if the command has found the manager of `token` to be absent.
    pub(super) fn is_gone(&self, token: OwnerToken) -> bool {
        self.gone.contains(token)
    }

    /// Returns `true` if the command has spent its budget for absent waiters.
    pub(super) const fn is_unfinished(&self) -> bool {
        self.gone.spent >= self.state.limits.gone
    }

    /// Removes an absent waiter.
    pub(super) fn strike_gone(&mut self, token: OwnerToken, line: Line) {
        self.gone.count(token, line);
        self.strike(token);
    }

    /// Gives `token` the name for `ttl`.
    pub(super) fn take(&mut self, token: OwnerToken, class: Class, ttl: Duration) {
        if class == Class::Exclusive {
            self.state.readers.remove(self.key.name());
            self.own(token, ttl, self.is_waited_for() && self.applies(Rule::HandOverKeepsTheMark));
        } else {
            self.take_share(token, class, ttl);
        }
    }

    /// Gives `token` a share of the name for `ttl`. It loses its exclusive lock, if it had one.
    fn take_share(&mut self, token: OwnerToken, class: Class, ttl: Duration) {
        let now = self.now;
        self.state.locks.remove(self.key.name());
        let readers = self.state.readers.entry(self.key.name().into()).or_insert_with(|| Readers::new(now));
        readers.put(token, class, now.after(ttl), now);
    }

    /// Reserves the name for a while against a plain `SET`, for `token`, which wants it and could have it.
    pub(super) fn reserve_for(&mut self, token: OwnerToken) {
        if self.owner().is_some() || self.has_share(token) {
            return;
        }
        let now = self.now;
        let readers = self.state.readers.entry(self.key.name().into()).or_insert_with(|| Readers::new(now));
        readers.reserve(token, now.after(RESERVED), now);
    }

    /// Removes the hold or the reservation of `token`.
    pub(super) fn drop_hold_of(&mut self, token: OwnerToken) {
        let (name, now) = (self.key.name(), self.now);
        if self.owner() == Some(token) {
            self.state.locks.remove(name);
        }
        if let Some(readers) = self.state.readers.get_mut(name) {
            readers.remove(token, now);
            if readers.is_gone(now) {
                self.state.readers.remove(name);
            }
        }
    }

    /// Returns the rest of the token's lease.
    pub(super) fn hold_left(&self) -> Duration {
        let share = || self.share_end(self.token).map(|end| end.since(self.now));
        self.left().filter(|_| self.is_owner()).or_else(share).unwrap_or_default()
    }

    /// Returns the time until the key expires.
    pub(super) fn key_left(&self) -> Option<Duration> {
        self.left().or_else(|| self.readers().map(|readers| readers.expires().since(self.now)))
    }

    /// Removes the waiters that alone block the token at this name, until one of them is present. Returns `true` if any
    /// was removed.
    pub(super) fn passes_over(&mut self) -> bool {
        let mut has_passed = false;
        while !self.is_unfinished() && self.passes_first_over(has_passed) {
            has_passed = true;
        }
        has_passed
    }

    /// Removes the first such waiter if it is absent or silent. Returns `true` if it was.
    ///
    /// If the command `has_passed` over other waiters before, the present one may be first only since then. A waiter for
    /// several names must ask for all of them, so it is notified that this one is free. A waiter for one name is
    /// admitted by the same command.
    fn passes_first_over(&mut self, has_passed: bool) -> bool {
        let is_only_behind = !self.is_held_against() && self.is_behind_others();
        let first = self.queue().and_then(|queue| queue.first_against(self.class));
        let Some(first) = first.filter(|_| is_only_behind) else { return false };
        let (now, by) = (self.now, self.token);
        let line = self.queue().and_then(|queue| queue.line_of(first)).unwrap_or(Line::ALONE);
        let is_first_now = has_passed && line.has_several && self.applies(Rule::NextAfterTheAbsentAsks);
        let notice = if is_first_now { Notice::Free } else { Notice::Contended { by } };
        let pings = self.applies(Rule::BlockersArePinged);
        if pings && (self.is_gone(first) || self.notify(first, notice) == 0) {
            self.strike_gone(first, line);
            return true;
        }
        let minds_silence = self.applies(Rule::SilentWaitersLeave);
        let is_silent = self.queue_mut().is_some_and(|queue| queue.check_silence(first, now)) && minds_silence;
        if is_silent {
            self.gone.count_silent();
            self.strike(first);
        }
        is_silent
    }

    /// Notifies the conflicting holders of the name of the waiting token.
    pub(super) fn tell_holders(&mut self, holds: bool, is_new: bool) {
        let by = self.token;
        let notice = if holds { Notice::Wanted { by } } else { Notice::Contended { by } };
        if let Some(owner) = self.owner().filter(|owner| *owner != by) {
            if self.applies(Rule::WaitersMarkTheHolder) {
                self.mark();
            }
            if is_new || self.applies(Rule::HolderHearsOfEveryCall) {
                self.notify(owner, notice);
            }
            return;
        }
        let most = if self.applies(Rule::AllHoldersHear) { MOST_TOLD } else { 1 };
        let against = self.readers().map_or(Vec::new(), |readers| readers.live_against(self.class, self.now));
        for reader in against.into_iter().filter(|reader| *reader != by).take(most) {
            self.notify(reader, notice);
        }
    }
}
