//! Who has one name, who waits for it, and what that means for the token of the command.

use super::limits::MOST_GONE;
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

/// So many of those who share a lock are told of a waiter at once. Smaller, more of them hear of it at its next call only;
/// larger, the server is busy for longer.
pub(crate) const MOST_TOLD: usize = 64;

impl Execution<'_> {
    /// As what the token wants the name.
    pub(super) const fn line(&self) -> Line {
        Line::new(self.class, self.has_several)
    }

    pub(super) fn readers(&self) -> Option<&Readers> {
        self.state.readers.get(self.key.name())
    }

    /// As what a token has the name together with others, if it has.
    pub(super) fn share_of(&self, token: OwnerToken) -> Option<Class> {
        self.readers()?.held_by(token, self.now).map(|(class, _)| class)
    }

    pub(super) fn has_share(&self, token: OwnerToken) -> bool {
        self.share_of(token).is_some()
    }

    fn share_end(&self, token: OwnerToken) -> Option<Instant> {
        self.readers()?.end_of(token, self.now)
    }

    /// As what a token has the name, if it has.
    pub(super) fn hold_of(&self, token: OwnerToken) -> Option<Class> {
        let is_owner = self.owner() == Some(token);
        if is_owner { Some(Class::Exclusive) } else { self.share_of(token) }
    }

    /// Whether the token has the name, as whatever.
    pub(super) fn holds(&self) -> bool {
        self.hold_of(self.token).is_some()
    }

    /// Whether what a token has of the name is as good as what is wanted.
    pub(super) fn covers_part(&self, token: OwnerToken) -> bool {
        self.hold_of(token).is_some_and(|held| held.covers(self.class))
    }

    /// Whether others have the name that do not go with the token.
    pub(super) fn is_held_against(&self) -> bool {
        self.is_taken_from(self.token, self.class)
    }

    /// Whether others than `token` have the name who do not go with somebody of this class.
    pub(super) fn is_taken_from(&self, token: OwnerToken, class: Class) -> bool {
        let others = |readers: &Readers| readers.live_against(class, self.now).iter().any(|other| *other != token);
        let is_kept_out = !class.is_intent() || self.applies(Rule::IntentsKeepOut);
        is_kept_out && (self.owner().is_some_and(|owner| owner != token) || self.readers().is_some_and(others))
    }

    /// Whether an earlier token waits that does not go with this one.
    pub(super) fn is_behind_others(&self) -> bool {
        self.is_behind(self.token, self.class)
            && (self.class == Class::Exclusive || self.applies(Rule::WaitersComeFirst))
    }

    /// Whether a token waits before `token` that does not go with somebody of this class.
    pub(super) fn is_behind(&self, token: OwnerToken, class: Class) -> bool {
        self.queue().and_then(|queue| queue.first_against(class)).is_some_and(|first| first < token)
    }

    /// Whether the token was not in the queue before.
    pub(super) fn join_among(&mut self) -> bool {
        let (token, line, now) = (self.token, self.line(), self.now);
        self.state.queues.entry(self.key.name().into()).or_insert_with(|| Queue::new(now)).join(token, line, now)
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

    /// Returns `true` if the command has found as many absent waiters as it may.
    pub(super) fn is_unfinished(&self) -> bool {
        self.gone.looks >= self.state.limits.gone
    }

    /// Removes an absent waiter, and those of all absent managers among the next waiters in the same line; but not the token that asks.
    pub(super) fn strike_gone(&mut self, token: OwnerToken, line: Line) {
        if !self.is_gone(token) {
            self.gone.found.push(token);
        }
        let asks = self.token;
        if let Some(queue) = self.state.queues.get_mut(self.key.name()) {
            let is_gone = |other: &OwnerToken| *other != asks && self.gone.contains(*other);
            queue.remove_among_first(line, MOST_GONE, is_gone);
        }
        self.count_gone(token);
    }

    /// Removes one absent waiter.
    pub(super) fn count_gone(&mut self, token: OwnerToken) {
        self.gone.looks += 1;
        self.strike(token);
    }

    /// `token` has the name for `ttl`.
    pub(super) fn take(&mut self, token: OwnerToken, class: Class, ttl: Duration) {
        if class == Class::Exclusive {
            self.state.readers.remove(self.key.name());
            self.own(token, ttl, self.is_waited_for());
        } else {
            self.take_share(token, class, ttl);
        }
    }

    /// `token` has the name together with others for `ttl`. If it had the lock alone, it has not any more.
    fn take_share(&mut self, token: OwnerToken, class: Class, ttl: Duration) {
        let now = self.now;
        self.state.locks.remove(self.key.name());
        let readers = self.state.readers.entry(self.key.name().into()).or_insert_with(|| Readers::new(now));
        readers.put(token, class, now.after(ttl), now);
    }

    /// No plain `SET` takes the name for a while, because `token` wants it and could have it.
    pub(super) fn reserve_for(&mut self, token: OwnerToken) {
        if self.owner().is_some() || self.has_share(token) {
            return;
        }
        let now = self.now;
        let readers = self.state.readers.entry(self.key.name().into()).or_insert_with(|| Readers::new(now));
        readers.reserve(token, now.after(RESERVED), now);
    }

    /// `token` does not have the name any more, if it had, and has not reserved it.
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

    /// How much is left of what the token has.
    pub(super) fn hold_left(&self) -> Duration {
        let share = || self.share_end(self.token).map(|end| end.since(self.now));
        self.left().filter(|_| self.is_owner()).or_else(share).unwrap_or_default()
    }

    /// How much is left until the key expires.
    pub(super) fn key_left(&self) -> Option<Duration> {
        self.left().or_else(|| self.readers().map(|readers| readers.expires().since(self.now)))
    }

    /// Passes those waiters over that alone keep the token from the name, until somebody is there who could take it. Whether any
    /// was passed over.
    pub(super) fn passes_over(&mut self) -> bool {
        let mut has_passed = false;
        while !self.is_unfinished() && self.passes_first_over() {
            has_passed = true;
        }
        has_passed
    }

    /// The same of the first one.
    fn passes_first_over(&mut self) -> bool {
        let is_only_behind = !self.is_held_against() && self.is_behind_others();
        let first = self.queue().and_then(|queue| queue.first_against(self.class));
        let Some(first) = first.filter(|_| is_only_behind) else { return false };
        let (now, by) = (self.now, self.token);
        let pings = self.applies(Rule::BlockersArePinged);
        if pings && (self.is_gone(first) || self.notify(first, Notice::Contended { by }) == 0) {
            let line = self.queue().and_then(|queue| queue.line_of(first)).unwrap_or(Line::ALONE);
            self.strike_gone(first, line);
            return true;
        }
        let minds_silence = self.applies(Rule::SilentWaitersLeave);
        let is_silent = self.queue_mut().is_some_and(|queue| queue.is_silent(first, now)) && minds_silence;
        if is_silent {
            self.count_gone(first);
        }
        is_silent
    }

    /// Tells those of the token that have the name and are in its way.
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
