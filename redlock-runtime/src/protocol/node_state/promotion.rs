//! Letting those in who wait, where some of them share the lock.

use super::Execution;
use crate::lock::{Mode, OwnerToken};
use crate::protocol::rules::Rule;
use std::time::Duration;

/// So many waiters are let in by one command. Smaller, more of a crowd that shares a lock have to ask by themselves; larger,
/// the server is busy for longer.
pub(crate) const MOST_STEPS: usize = 64;

/// So many are looked at for that. Smaller, those behind the waiters of a process that is gone have to ask by themselves; larger,
/// the server is busy for longer.
pub(crate) const MOST_GONE: usize = 1024;

impl Execution<'_> {
    /// Gives the lock to those in the queue who can have it now, the earliest first, as claims: to one that wants it alone, or
    /// to all those together who share it and have come before that one. Whose process is gone is passed over.
    ///
    /// `own_ttl` is for the token of the command: a lease and not a claim, without a wake-up. Whether it was among them.
    pub(super) fn promote(&mut self, claim: Duration, own_ttl: Option<Duration>) -> bool {
        let (mut has_own, mut has_shared, mut let_in) = (false, false, 0);
        for _ in 0..MOST_GONE {
            if let_in == MOST_STEPS {
                break;
            }
            let Some((next, mode)) = self.next_in().filter(|_| !has_shared || self.applies(Rule::ReadersTogether))
            else {
                break;
            };
            if self.has_share(next) {
                // A claim would end its lease early. It stands in the queue all the same when a late command has come in between.
                self.strike(next);
                continue;
            }
            let is_in = if let Some(ttl) = own_ttl.filter(|_| next == self.token) {
                has_own = true;
                self.strike(next);
                let ttl = if self.applies(Rule::OwnTurnIsALease) { ttl } else { claim };
                self.take(next, mode, ttl);
                true
            } else {
                let is_heard = self.give_to(next, mode, claim);
                let_in += usize::from(is_heard);
                is_heard
            };
            has_shared |= is_in && mode.is_shared();
        }
        has_own
    }

    /// Who can have the lock now that is not had by one alone.
    fn next_in(&self) -> Option<(OwnerToken, Mode)> {
        let queue = self.queue().filter(|_| self.owner().is_none())?;
        let (writer, reader) = (queue.first(), queue.first_sharing());
        let reader = reader.filter(|reader| writer.is_none_or(|writer| *reader < writer));
        let writer = writer.filter(|_| reader.is_none() && !self.has_readers());
        reader.map(|reader| (reader, Mode::Shared)).or_else(|| writer.map(|writer| (writer, Mode::Exclusive)))
    }

    /// Gives the lock to `next`, which leaves the queue, as a claim. `false` when nobody is there to take it.
    pub(super) fn give_to(&mut self, next: OwnerToken, mode: Mode, claim: Duration) -> bool {
        self.strike(next);
        self.take(next, mode, claim);
        let is_heard = self.announce(next, claim) > 0;
        if !is_heard {
            self.drop_hold_of(next);
        }
        is_heard
    }

    fn strike(&mut self, token: OwnerToken) {
        if let Some(queue) = self.queue_mut() {
            queue.remove(token);
        }
    }
}
