//! What a node does where somebody shares a name, or wants several names: the general case, which is a script of its own in Redis.
//!
//! 1. A request has parts: names, and as what it wants each. A name is had by one token alone, or by several together whose
//!    classes go with each other. A request gets all of its parts or none.
//! 2. A request is *blocked* where a holder is in conflict with it, and where an earlier waiter is: readers do not overtake
//!    writers, and who wants several names is overtaken at none of them.
//! 3. Whoever is blocked tells all holders in conflict, not only one of them, because each may have to yield.
//! 4. Whoever leaves, whether it had anything or only waited, lets those in who were behind it ([`promotion`](super::promotion)).
//! 5. Who is blocked at a name by a waiter alone asks after that one: it may be gone, and would be in the way for as long as
//!    others have something of what it wants. So may one be whose process is frozen, which is known by its silence.
//! 6. Who waits for several names reserves those that it could have, so that a plain `SET` does not take them.
//! 7. Those who are told that a name is free are many below a folder: who is told tells the next of them.
//! 8. A holder that shares its lock from now on is told of as a reader, and never has it alone again.

use super::queue::Line;
use super::{Execution, Queue};
use crate::lock::OwnerToken;
use crate::lock::class::Class;
use crate::protocol::command::{Notice, Reply, Verb};
use crate::protocol::lease;
use crate::protocol::node_state::limits::MOST_STEPS;
use crate::protocol::rules::Rule;
use std::time::Duration;

impl<'a> Execution<'a> {
    /// Whether the command is one of the general case.
    pub(super) fn concerns_readers(&self) -> bool {
        self.line() != Line::ALONE || self.readers().is_some() || self.queue().is_some_and(Queue::concerns_readers)
    }

    /// Does what `verb` says, in the general case; `None` when it is nothing special there.
    pub(super) fn share(&mut self, verb: Verb, other: Option<OwnerToken>) -> Option<Reply> {
        let is_single = self.line() == Line::ALONE;
        // Who has the lock alone, and knows of nobody who waits, looks at no queue.
        let is_simple = is_single && self.readers().is_none() && self.is_alone();
        match verb {
            Verb::SetNx { .. } if is_single => self.readers().map(|_| Reply::Taken),
            Verb::SetNx { ttl } => Some(self.try_at_once(ttl)),
            Verb::Acquire { ttl, claim, holds } => Some(self.acquire_among(ttl, claim, holds)),
            Verb::Extend { ttl } | Verb::Renew { ttl } | Verb::Keep { ttl } | Verb::Adopt { ttl } if !is_single => {
                Some(self.extend_among(ttl, other.filter(|_| matches!(verb, Verb::Adopt { .. }))))
            }
            Verb::Extend { ttl } | Verb::Renew { ttl } | Verb::Keep { ttl } => self.raise(ttl),
            // What is left to others as a share is no lock for one alone.
            Verb::Adopt { .. } => self.readers().map(|_| Reply::NotOwner),
            Verb::Enter { .. } | Verb::Raise { .. } => None,
            Verb::Yield { claim } => Some(self.yield_among(claim, other)),
            Verb::Release { .. } if is_simple => None,
            Verb::Release { claim } => Some(self.release_among(claim)),
            Verb::Revoke => other.filter(|_| self.readers().is_some()).map(|from| self.revoke_share(from)),
        }
    }

    /// Goes to each part, until `look` says yes. Whether it has.
    fn any(&mut self, mut look: impl FnMut(&mut Self) -> bool) -> bool {
        let subject: &'a _ = self.subject;
        subject.wanted().any(|(key, class)| {
            (self.key, self.class) = (key, class);
            look(self)
        })
    }

    /// Goes to each part.
    fn each(&mut self, mut act: impl FnMut(&mut Self)) {
        self.any(|part| {
            act(part);
            false
        });
    }

    /// Whether something keeps the token from its parts.
    fn is_blocked(&mut self, holds: bool) -> bool {
        self.any(|part| part.is_held_against() || !holds && part.is_behind_others())
    }

    /// Takes all parts if nothing is in conflict with them, neither a holder nor anybody who has come before. It never waits.
    pub(super) fn try_at_once(&mut self, ttl: Duration) -> Reply {
        let claim = lease::claim(ttl);
        for _ in 0..MOST_STEPS {
            self.each(|part| {
                if part.is_behind_others() {
                    // A name that is free is that of those who have come before.
                    part.promote(claim, None, None);
                }
            });
            if self.any(|part| part.is_held_against()) {
                return Reply::Taken;
            } else if !self.is_blocked(false) {
                self.take_all(ttl, claim);
                return Reply::Granted { smaller: false, number: None };
            } else if !self.any(Self::passes_over) {
                return Reply::Taken;
            }
        }
        Reply::Taken
    }

    /// The token has all of its parts.
    fn take_all(&mut self, ttl: Duration, claim: Duration) {
        let mut waited = Vec::new();
        self.each(|part| {
            waited.push(part.queue().is_some_and(|queue| queue.line_of(part.token).is_some()));
            part.leave_queue();
            part.take_as_before(ttl);
        });
        let mut waited = waited.into_iter();
        self.each(|part| {
            let is_told = waited.next() == Some(true);
            part.lets_others_in(is_told, claim);
        });
    }

    /// The token has this part. What was lowered before stays what it is.
    fn take_as_before(&mut self, ttl: Duration) {
        let held = self.share_of(self.token);
        let class = held.filter(|held| !held.covers(self.class)).unwrap_or(self.class);
        if class == Class::Exclusive && self.is_owner() {
            self.own(self.token, ttl, self.is_marked());
        } else {
            self.take(self.token, class, ttl);
        }
    }

    /// Those who share the name as well need not wait. Whoever has waited passes on that the name is free, if not all were told.
    fn lets_others_in(&mut self, has_waited: bool, claim: Duration) {
        let is_shared =
            self.class == Class::Shared || !self.is_owner() && self.share_of(self.token) == Some(Class::Shared);
        if is_shared || has_waited && self.queue().is_some_and(Queue::has_untold) {
            self.promote(claim, None, None);
        }
    }

    fn acquire_among(&mut self, ttl: Duration, claim: Duration, holds: bool) -> Reply {
        if !self.any(|part| !part.holds()) {
            let smaller = self.any(|part| part.is_behind_others());
            self.take_all(ttl, claim);
            return Reply::Granted { smaller, number: None };
        }
        if !self.is_blocked(holds) {
            self.take_all(ttl, claim);
            return Reply::Granted { smaller: false, number: None };
        }
        // Who has lost some of the names waits for all of them: it keeps none from others meanwhile.
        let mut freed = Vec::new();
        self.each(|part| {
            freed.push(part.hold_of(part.token).filter(|_| part.has_several));
            if freed.last().is_some_and(Option::is_some) {
                part.drop_hold_of(part.token);
            }
        });
        self.each(|part| {
            let is_new = part.join_among();
            part.tell_holders(holds, is_new);
        });
        let mut freed = freed.into_iter();
        self.each(|part| {
            if let Some(freed) = freed.next().flatten() {
                part.promote(claim, None, Some(freed));
            }
        });
        for _ in 0..MOST_STEPS {
            if self.comes_in(ttl, claim, holds) {
                return Reply::Granted { smaller: false, number: None };
            } else if !self.any(Self::passes_over) {
                break;
            }
        }
        if self.has_several && self.applies(Rule::FreeNamesAreReserved) {
            self.each(|part| {
                if !part.is_held_against() && !part.is_behind_others() {
                    part.reserve_for(part.token);
                }
            });
        }
        let rank = if self.is_unfinished() { 0 } else { self.largest_rank() };
        Reply::Queued { left: self.longest_left(), rank }
    }

    /// Lets those in who can have the names. Whether the token is among them.
    fn comes_in(&mut self, ttl: Duration, claim: Duration, holds: bool) -> bool {
        if !self.has_several {
            return self.promote(claim, Some(ttl), None);
        }
        self.each(|part| {
            part.promote(claim, None, None);
        });
        let is_free = !self.is_blocked(holds);
        if is_free {
            self.take_all(ttl, claim);
        }
        is_free
    }

    /// Starts the leases of all parts anew, if the token has all of them. What it has alone, and shares by now, is shared.
    fn extend_among(&mut self, ttl: Duration, from: Option<OwnerToken>) -> Reply {
        let is_theirs = |part: &Self| from.is_some_and(|from| part.covers_part(from));
        if self.any(|part| !part.covers_part(part.token) && !is_theirs(part)) {
            return Reply::NotOwner;
        }
        self.each(|part| {
            let (ours, mut freed) = (part.covers_part(part.token), part.hold_of(part.token));
            if let Some(from) = from.filter(|_| !ours) {
                freed = part.hold_of(from);
                part.drop_hold_of(from);
            }
            let is_lowered = freed.is_some_and(|freed| freed != part.class);
            part.take_as_before(ttl);
            if is_lowered || !ours {
                part.promote(lease::claim(ttl), None, freed);
            }
        });
        let mut waiters = 0;
        self.each(|part| waiters = waiters.max(part.queue().map_or(0, |queue| queue.len_against(part.class))));
        Reply::Extended { waiters, number: None }
    }

    /// An extension of a lock that the token had alone, and shares by now: it is a late one, and finds nothing.
    fn raise(&mut self, ttl: Duration) -> Option<Reply> {
        self.readers()?;
        if self.applies(Rule::DowngradeNeverRises) || !self.has_share(self.token) {
            return Some(Reply::NotOwner);
        }
        self.take(self.token, Class::Exclusive, ttl);
        Some(Reply::Extended { waiters: 0, number: None })
    }

    fn yield_among(&mut self, claim: Duration, to: Option<OwnerToken>) -> Reply {
        if self.any(|part| !part.covers_part(part.token)) {
            return Reply::NotOwner;
        }
        let waits = |part: &Self| to.is_some_and(|to| part.queue().is_some_and(|queue| queue.line_of(to).is_some()));
        let to = to.filter(|_| self.any(|part| waits(part)));
        if to.is_none() && !self.any(|part| part.is_behind_others()) {
            return Reply::Kept;
        }
        let mut left: Option<Duration> = None;
        self.each(|part| left = Some(left.map_or(part.hold_left(), |left| left.min(part.hold_left()))));
        let left = left.unwrap_or_default();
        self.each(|part| {
            part.drop_hold_of(part.token);
            part.join_among();
        });
        let (mut is_own, mut is_left_to_it) = (false, false);
        self.each(|part| {
            let line = to.and_then(|to| Some((to, part.queue()?.line_of(to)?)));
            let own_ttl = (!part.has_several).then_some(left);
            match line {
                // Others who have the name have to yield as well, and must not let each other back in before.
                Some((to, Line { class, has_several: false })) if part.is_taken_from(to, class) => is_left_to_it = true,
                Some((to, Line { has_several: true, .. })) if part.nudge(to) => is_left_to_it = true,
                Some((to, Line { class, has_several: false })) => {
                    part.give_to(to, class, claim);
                    is_own = part.promote(claim, own_ttl, Some(part.class));
                }
                Some((to, Line { has_several: true, .. })) => {
                    part.strike(to);
                    is_own = part.promote(claim, own_ttl, Some(part.class));
                }
                None => is_own = part.promote(claim, own_ttl, Some(part.class)),
            }
        });
        if self.has_several && !is_left_to_it && !self.is_blocked(false) {
            self.take_all(left, claim);
            is_own = true;
        }
        if is_own { Reply::Kept } else { Reply::Yielded { left: self.longest_left() } }
    }

    fn release_among(&mut self, claim: Duration) -> Reply {
        if self.subject.mode.is_permit() && self.has_share(self.token) {
            self.tell_freed();
        }
        let (mut is_released, mut leaves) = (true, Vec::new());
        self.each(|part| {
            let token = part.token;
            let line = part.queue().and_then(|queue| queue.line_of(token));
            part.leave_queue();
            let held = part.hold_of(token);
            is_released &= held.is_some();
            part.drop_hold_of(token);
            // A repeated release finds nothing: the first one has not come to the end of the queue.
            let promotes = match line.filter(|_| held.is_none()) {
                Some(_) => part.applies(Rule::LeavingUnblocks),
                None => held.is_some() || part.applies(Rule::RepeatedReleasesGoOn),
            };
            leaves.push(promotes.then_some(held.or(line.map(|line| line.class)).into_iter()));
        });
        // When all parts are given back: who waits for several may have them.
        let mut leaves = leaves.into_iter();
        self.each(|part| {
            if let Some(mut freed) = leaves.next().flatten() {
                part.promote(claim, None, freed.next());
            }
        });
        self.released(is_released)
    }

    /// Takes the place of `from`, whose share somebody breaks, and tells it.
    fn revoke_share(&mut self, from: OwnerToken) -> Reply {
        let (token, now) = (self.token, self.now);
        let Some(readers) = self.state.readers.get_mut(self.key.name()) else { return Reply::NotOwner };
        let held = readers.held_by(from, now).or_else(|| readers.held_by(token, now));
        let Some((class, end)) = held else { return Reply::NotOwner };
        readers.replace(from, token, class, end);
        let is_told = self.notify(from, Notice::Revoked { by: token }) > 0;
        Reply::Revoked { left: end.since(now), is_told }
    }

    /// How much is left until the last of the keys expires from which somebody keeps the token, or of all if nobody does.
    fn longest_left(&mut self) -> Option<Duration> {
        if self.is_unfinished() {
            return Some(Duration::ZERO);
        }
        let (mut held, mut all) = (None, None);
        self.each(|part| {
            let left = part.key_left();
            all = all.max(left);
            held = held.max(left.filter(|_| part.is_held_against()));
        });
        held.or(all)
    }

    fn largest_rank(&mut self) -> u32 {
        let mut rank = 0;
        self.each(|part| rank = rank.max(part.queue().map_or(0, |queue| queue.rank(part.token))));
        rank
    }
}
