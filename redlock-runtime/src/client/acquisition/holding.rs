//! A lock that is held: renewals, and the end of it.

use super::Ownership;
use crate::error::LockError;
use crate::error::LossCause;
use crate::protocol::candidate::voter::Vote;
use crate::protocol::candidate::{Phase, Standing};
use crate::protocol::lease;
use crate::protocol::rules::Rule;
use crate::request::HoldTerms;
use crate::time::clock::Instant;
use std::task::Waker;
use std::time::Duration;

/// What the watchdog sees of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing to look after: it is not held.
    Nothing,
    /// It has to be renewed, or its loss be made known.
    Due,
    /// It can wait until then.
    Later(Instant),
}

impl Ownership {
    /// A call has the lock from now on, on its own terms.
    pub(crate) fn begin(&self, terms: HoldTerms, now: Instant) {
        self.standing().tenure.begin(terms, now);
    }

    /// Leaves the lock with the nodes that have it, for whoever puts another token in the place of this one. Elsewhere the
    /// token leaves the queue, and is given back should it still arrive.
    ///
    /// Whoever waits for the lock until then is announced here, which must not release it. The nodes have the token for one
    /// ttl from here, or two: an extension may still be on its way, and be executed when the first one is nearly over.
    pub(crate) fn detach(&self) {
        let (now, longest) = (self.core.clock.now(), 2 * self.ttl());
        let gone_by = now.after(longest + lease::drift(longest, self.terms.drift_factor));
        self.core.parked.park(*self.token(), gone_by, now);
        let mut standing = self.standing();
        standing.settle(self.core.clock);
        standing.phase = Phase::Left;
        self.leave_where(&mut standing, now, |node| node.vote != Vote::Granted);
    }

    /// Ends a lock whose lease has run out, for good: an answer that is still to come could otherwise make it good again,
    /// when nobody looks after it any more.
    pub(crate) fn forfeit(&self) {
        let mut standing = self.standing();
        standing.phase = Phase::Forfeited;
        standing.watchers.call();
    }

    /// Whether the watchdog should act at `now`, together with all that is due until `soon`.
    pub(crate) fn look(&self, now: Instant, soon: Instant) -> Look {
        let standing = self.standing();
        if standing.phase != Phase::Holding {
            return Look::Nothing;
        }
        let Some(end) = standing.held_until().filter(|end| now < *end) else {
            return if standing.watchers.is_empty() { Look::Nothing } else { Look::Due };
        };
        match standing.valid_until().and_then(|end| standing.tenure.renewal_due(end)) {
            Some(due) if due <= soon => Look::Due,
            due => Look::Later(due.map_or(end, |due| due.min(end))),
        }
    }

    /// Asks for new leases, without waiting for the answers. A lock that is lost is made known instead.
    pub(crate) fn renew(&self, now: Instant) {
        let mut standing = self.standing();
        standing.settle(self.core.clock);
        let is_held = standing.phase == Phase::Holding && standing.held_until().is_some_and(|end| now < end);
        if is_held && standing.tenure.renews() && self.core.rules.apply(Rule::LeasesAreRenewed) {
            standing.tenure.renewed(now);
            standing.numbers.begin_round();
            for index in 0..self.core.nodes.len() {
                if standing.is_renewable(index) {
                    let verb = standing.extension();
                    // Without a number: that of the token stays what it is.
                    self.ask(&mut standing, index, verb, None, now);
                }
            }
        }
        if !is_held {
            standing.watchers.call();
        }
    }

    /// Takes in the answers to a renewal. Whether some are still to come.
    pub(crate) fn is_awaited_after_settling(&self, now: Instant) -> bool {
        let mut standing = self.standing();
        standing.settle(self.core.clock);
        let is_lost = standing.phase == Phase::Holding && standing.held_until().is_none_or(|end| end <= now);
        if is_lost {
            standing.watchers.call();
        }
        standing.phase == Phase::Holding && standing.is_awaited()
    }

    /// The clock of node number `index` went ahead by at most `step`.
    pub(crate) fn clock_stepped(&self, index: usize, step: Duration) {
        self.standing().shorten(index, step, self.core.clock);
    }

    /// How much longer the lock is held, after having seen to it that `waker` is woken when it is lost.
    pub(crate) fn watch(&self, watcher: &mut Option<u64>, waker: &Waker) -> Duration {
        self.standing().watchers.watch(watcher, waker);
        self.validity()
    }

    pub(crate) fn forget_watcher(&self, watcher: u64) {
        self.standing().watchers.forget(watcher);
    }

    /// The error for a lock that is not held any more.
    pub(crate) fn lost(&self) -> LockError {
        self.lost_by(&self.standing())
    }

    /// The error for a lock that was given back before.
    pub(crate) fn released(&self) -> LockError {
        let held_for = self.standing().held_for(self.core.clock.now());
        LockError::Lost { key: self.key().clone(), held_for, cause: LossCause::Released }
    }

    /// Takes up a lock that another call has left at the nodes, together with the number that is wanted.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub(crate) async fn adopt(&self) -> Result<(), LockError> {
        let fence = {
            let mut standing = self.standing();
            standing.adopts = true;
            standing.numbers.fence()
        };
        self.extend_all(fence).await?;
        self.standing().hold(self.core.clock.now());
        Ok(())
    }

    pub(super) fn lost_by(&self, standing: &Standing) -> LockError {
        let now = self.core.clock.now();
        let is_proven = standing.held_until().is_some_and(|end| now < end);
        let cause = if standing.phase == Phase::Left {
            LossCause::Released
        } else if standing.tenure.is_used_up(now) {
            LossCause::MaxHold
        } else if is_proven || standing.is_taken() {
            // What was proven can only be over because the nodes say so.
            LossCause::Taken
        } else if standing.tenure.renews() {
            LossCause::NotRenewed { causes: self.failures(standing) }
        } else {
            LossCause::Expired
        };
        LockError::Lost { key: self.key().clone(), held_for: standing.held_for(now), cause }
    }
}
