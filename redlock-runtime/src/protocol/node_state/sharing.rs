//! Commands of a node that concern its queues: the general part of the scripts.
//!
//! 1. A request has parts: names, each with a wanted class. A name is owned by one token exclusively, or shared by
//!    several tokens whose classes are compatible. A request gets all of its parts or none.
//! 2. A request is *blocked* by a conflicting holder, and by an earlier conflicting waiter. So readers do not overtake
//!    writers, and a waiter for several names is overtaken at none of them.
//! 3. A blocked request notifies all conflicting holders, not only one of them, because each may have to yield.
//! 4. A token that leaves admits the waiters behind it, whether it owned anything or only waited
//!    ([`promotion`](super::promotion)).
//! 5. If only a waiter blocks a request at a name, the request pings that waiter. Its process may be gone, and it would
//!    block the name as long as others own something that it wants. A silent waiter is passed over as well, because its
//!    process may be frozen.
//! 6. A waiter for several names reserves the names that it could have, so that a plain `SET` does not take them.
//! 7. Many tokens may wait below a folder. Each notified waiter notifies the next ones.
//! 8. A holder that has downgraded its lock is treated as a reader, and never owns it exclusively again.

use super::queue::Line;
use super::{Execution, Queue};
use crate::lock::OwnerToken;
use crate::lock::class::Class;
use crate::protocol::command::{Notice, Reply};
use crate::protocol::lease;
use crate::protocol::node_state::limits::MOST_STEPS;
use crate::protocol::rules::Rule;
use std::time::Duration;

impl<'a> Execution<'a> {
    /// Visits each part until `look` returns `true`. Returns `true` if it has.
    fn any(&mut self, mut look: impl FnMut(&mut Self) -> bool) -> bool {
        let subject: &'a _ = self.subject;
        subject.wanted().any(|(key, class)| {
            (self.key, self.class) = (key, class);
            look(self)
        })
    }

    /// Visits each part.
    fn each(&mut self, mut act: impl FnMut(&mut Self)) {
        self.any(|part| {
            act(part);
            false
        });
    }

    /// Returns `true` if a holder or an earlier waiter blocks the token at one of its parts.
    fn finds_obstacle(&mut self, holds: bool) -> bool {
        self.any(|part| part.is_held_against() || !holds && part.is_behind_others())
    }

    /// Takes all parts if neither a holder nor an earlier waiter conflicts with them. Never waits.
    pub(super) fn try_at_once(&mut self, ttl: Duration) -> Reply {
        let claim = lease::claim(ttl);
        for _ in 0..MOST_STEPS {
            self.each(|part| {
                if part.is_behind_others() {
                    // A free name belongs to the earlier waiters.
                    part.promote(claim, None, None);
                }
            });
            if self.any(|part| part.is_held_against()) {
                return Reply::Taken;
            } else if !self.finds_obstacle(false) {
                self.take_all(ttl, claim);
                return Reply::Granted { smaller: false, number: None };
            } else if !self.any(Self::passes_over) {
                return Reply::Taken;
            }
        }
        Reply::Taken
    }

    /// Gives the token all of its parts.
    fn take_all(&mut self, ttl: Duration, claim: Duration) {
        let mut waited = Vec::new();
        self.each(|part| {
            waited.push(part.queue().is_some_and(|queue| queue.line_of(part.token).is_some()));
            part.leave_queue();
            part.retake_part(ttl);
        });
        let mut waited = waited.into_iter();
        self.each(|part| {
            let is_told = waited.next() == Some(true);
            part.admit_other_readers(is_told, claim);
        });
    }

    /// Gives the token this part. A downgraded part stays shared.
    fn retake_part(&mut self, ttl: Duration) {
        let held = self.share_of(self.token);
        let class = held.filter(|held| !held.covers(self.class)).unwrap_or(self.class);
        if class == Class::Exclusive && self.is_owner() {
            self.own(self.token, ttl, self.is_marked());
        } else {
            self.take(self.token, class, ttl);
        }
    }

    /// Admits other readers of a shared name. If the token has waited itself, it also notifies the remaining waiters
    /// that the name is free.
    fn admit_other_readers(&mut self, has_waited: bool, claim: Duration) {
        let is_shared =
            self.class == Class::Shared || !self.is_owner() && self.share_of(self.token) == Some(Class::Shared);
        if is_shared || has_waited && self.queue().is_some_and(Queue::has_untold) {
            self.promote(claim, None, None);
        }
    }

    pub(super) fn acquire(&mut self, ttl: Duration, claim: Duration, holds: bool) -> Reply {
        // The token owns all parts already: their leases restart.
        if !self.any(|part| !part.holds()) {
            let smaller = self.any(|part| part.is_behind_others());
            self.take_all(ttl, claim);
            return Reply::Granted { smaller, number: None };
        }
        // Neither a holder nor an earlier waiter is in conflict: the token takes all parts.
        if !self.finds_obstacle(holds) {
            self.take_all(ttl, claim);
            return Reply::Granted { smaller: false, number: None };
        }
        // A token that has lost some of its names waits for all of them, and meanwhile blocks no other token.
        let mut freed = Vec::new();
        self.each(|part| {
            freed.push(part.hold_of(part.token).filter(|_| part.has_several));
            if freed.last().is_some_and(Option::is_some) {
                part.drop_hold_of(part.token);
            }
        });
        // It joins the queue of every name, and notifies the conflicting holders.
        self.each(|part| {
            let is_new = part.join_queue();
            part.tell_holders(holds, is_new);
        });
        // The waiters behind the dropped parts may enter now.
        let mut freed = freed.into_iter();
        self.each(|part| {
            if let Some(freed) = freed.next().flatten() {
                part.promote(claim, None, Some(freed));
            }
        });
        // The token enters as soon as the absent and silent waiters ahead of it were passed over.
        for _ in 0..MOST_STEPS {
            if self.admit_waiters(ttl, claim, holds) {
                return Reply::Granted { smaller: false, number: None };
            } else if !self.any(Self::passes_over) {
                break;
            }
        }
        // The names that it could have are reserved until it gets all of them.
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

    /// Admits the waiters that can have the names. Returns `true` if the token is among them.
    fn admit_waiters(&mut self, ttl: Duration, claim: Duration, holds: bool) -> bool {
        if !self.has_several {
            return self.promote(claim, Some(ttl), None);
        }
        self.each(|part| {
            part.promote(claim, None, None);
        });
        let is_free = !self.finds_obstacle(holds);
        if is_free {
            self.take_all(ttl, claim);
        }
        is_free
    }

    /// Restarts the leases of all parts, if the token has all of them. An exclusive part that it shares now becomes
    /// shared.
    pub(super) fn extend_shares(&mut self, ttl: Duration, from: Option<OwnerToken>) -> Reply {
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
            part.retake_part(ttl);
            if is_lowered || !ours {
                part.promote(lease::claim(ttl), None, freed);
            }
        });
        let mut waiters = 0;
        self.each(|part| waiters = waiters.max(part.queue().map_or(0, |queue| queue.len_against(part.class))));
        Reply::Extended { waiters, number: None }
    }

    /// Refuses the late exclusive extension of a downgraded lock.
    pub(super) fn extend_downgraded(&mut self, ttl: Duration) -> Reply {
        if self.applies(Rule::DowngradeNeverRises) || !self.has_share(self.token) {
            return Reply::NotOwner;
        }
        self.take(self.token, Class::Exclusive, ttl);
        Reply::Extended { waiters: 0, number: None }
    }

    pub(super) fn yield_(&mut self, claim: Duration, to: Option<OwnerToken>) -> Reply {
        if self.any(|part| !part.covers_part(part.token)) {
            return Reply::NotOwner;
        }
        // A named token counts only if it waits at one of the parts.
        let waits = |part: &Self| to.is_some_and(|to| part.queue().is_some_and(|queue| queue.line_of(to).is_some()));
        let to = to.filter(|_| self.any(|part| waits(part)));
        if to.is_none() && !self.any(|part| part.is_behind_others()) {
            return Reply::Kept;
        }
        // The token keeps the rest of its lease if nothing else takes the names.
        let mut left: Option<Duration> = None;
        self.each(|part| left = Some(left.map_or(part.hold_left(), |left| left.min(part.hold_left()))));
        let left = left.unwrap_or_default();
        // It gives all parts up, and joins their queues.
        self.each(|part| {
            part.drop_hold_of(part.token);
            part.join_queue();
        });
        let (mut is_own, mut is_left_to_it) = (false, false);
        self.each(|part| {
            let line = to.and_then(|to| Some((to, part.queue()?.line_of(to)?)));
            let own_ttl = (!part.has_several).then_some(left);
            match line {
                // The other readers have to yield as well, and must not admit each other before.
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
        // If all names stayed free, the token takes them again.
        if self.has_several && !is_left_to_it && !self.finds_obstacle(false) {
            self.take_all(left, claim);
            is_own = true;
        }
        if is_own { Reply::Kept } else { Reply::Yielded { left: self.longest_left() } }
    }

    pub(super) fn release(&mut self, claim: Duration) -> Reply {
        if self.subject.mode.is_permit() && self.has_share(self.token) {
            self.notify_freed();
        }
        let (mut is_released, mut leaves) = (true, Vec::new());
        self.each(|part| {
            let token = part.token;
            let line = part.queue().and_then(|queue| queue.line_of(token));
            part.leave_queue();
            let holder = part.owner().filter(|_| !part.applies(Rule::ReleaseChecksTheOwner)).unwrap_or(token);
            let held = part.hold_of(holder);
            is_released &= held.is_some();
            part.drop_hold_of(holder);
            // A repeated release finds nothing: the first one has not reached the end of the queue.
            let promotes = match line.filter(|_| held.is_none()) {
                Some(_) => part.applies(Rule::LeavingUnblocks),
                None => held.is_some() || part.applies(Rule::RepeatedReleasesGoOn),
            };
            leaves.push(promotes.then_some(held.or(line.map(|line| line.class)).into_iter()));
        });
        // After all parts were released, because waiters for several names may get all of them.
        let mut leaves = leaves.into_iter();
        self.each(|part| {
            if let Some(mut freed) = leaves.next().flatten() {
                part.promote(claim, None, freed.next());
            }
        });
        self.released(is_released)
    }

    /// Takes the place of `from`, whose share is being broken, and notifies it.
    pub(super) fn revoke_share(&mut self, from: OwnerToken) -> Reply {
        let (token, now) = (self.token, self.now);
        let Some(readers) = self.state.readers.get_mut(self.key.name()) else { return Reply::NotOwner };
        let held = readers.held_by(from, now).or_else(|| readers.held_by(token, now));
        let Some((class, end)) = held else { return Reply::NotOwner };
        readers.replace(from, token, class, end);
        let is_told = self.notify(from, Notice::Revoked { by: token }) > 0;
        Reply::Revoked { left: end.since(now), is_told }
    }

    /// Returns the time until the last conflicting key expires; or the last of all keys, if none conflicts.
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
