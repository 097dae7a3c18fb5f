//! Letting those in who wait, where some of them share a name or want several.
//!
//! Who wants one name is given it, as a claim. Who wants several is told that this one is free, and asks for all of them: the
//! others may be names that the command does not know. So nobody has a part of what it wants while it waits for the rest.

use super::Execution;
use super::queue::Line;
use crate::lock::OwnerToken;
use crate::lock::class::Class;
use crate::protocol::command::Notice;
use crate::protocol::rules::Rule;
use std::time::Duration;

/// So many waiters are let in by one command. Smaller, more of a crowd that shares a lock have to ask by themselves; larger,
/// the server is busy for longer.
pub(crate) const MOST_STEPS: usize = 64;

/// So many are looked at for that. Smaller, those behind the waiters of a process that is gone have to ask by themselves; larger,
/// the server is busy for longer.
pub(crate) const MOST_GONE: usize = 1024;

/// What has become of a waiter that was looked at.
enum Step {
    /// It is in, or gone.
    Left,
    /// It stays where it is.
    Passed,
}

impl Execution<'_> {
    /// Gives the name to those in the queue who can have it now, the earliest first: as claims to one that wants it alone, or to
    /// all those together who go with each other and have come before that one. Whose process is gone is passed over.
    ///
    /// `own_ttl` is for the token of the command: a lease and not a claim, without a wake-up. Whether it was among them. What has
    /// `freed` the name, if anything has, is a reason to tell those who want several: whoever goes with it was not kept out by it.
    pub(super) fn promote(&mut self, claim: Duration, own_ttl: Option<Duration>, freed: Option<Class>) -> bool {
        let mut freed: Vec<Class> = freed.into_iter().collect();
        let mut passed = [None; Line::ALL.len()];
        let (mut has_own, mut has_shared, mut steps) = (false, false, 0);
        for _ in 0..MOST_GONE {
            if steps == MOST_STEPS || self.owner().is_some() || has_shared && !self.applies(Rule::ReadersTogether) {
                break;
            }
            let Some((next, line)) = self.next_waiter(&passed, &freed) else { break };
            if self.has_share(next) {
                // A claim would end its lease early. It stands in the queue all the same when a late command has come in between.
                self.strike(next);
                continue;
            }
            let step = if self.is_taken_from(next, line.class) || self.is_behind(next, line.class) {
                Step::Passed
            } else if line.has_several {
                self.tell(next, line, &mut freed)
            } else if let Some(ttl) = own_ttl.filter(|_| next == self.token) {
                has_own = true;
                self.strike(next);
                let ttl = if self.applies(Rule::OwnTurnIsALease) { ttl } else { claim };
                self.take(next, line.class, ttl);
                has_shared |= line.class == Class::Shared;
                Step::Left
            } else {
                let is_heard = self.give_to(next, line.class, claim);
                steps += usize::from(is_heard);
                has_shared |= is_heard && line.class == Class::Shared;
                if !is_heard {
                    freed.push(line.class);
                }
                Step::Left
            };
            if matches!(step, Step::Passed) {
                if line.class == Class::Exclusive {
                    // Everybody else has come later, and does not go with it.
                    break;
                }
                steps += 1;
                if let Some(passed) = passed.get_mut(line.score()) {
                    *passed = Some(next);
                }
            }
        }
        has_own
    }

    /// Tells somebody who wants several names that this one is free, unless the token of the command is meant. Whose process is
    /// gone leaves, which may free the name for others.
    fn tell(&mut self, next: OwnerToken, line: Line, freed: &mut Vec<Class>) -> Step {
        if next == self.token || self.nudge(next) {
            return Step::Passed;
        }
        self.strike(next);
        freed.push(line.class);
        Step::Left
    }

    /// The first who wants the name, of those who are to be looked at and were not passed over.
    fn next_waiter(
        &self,
        passed: &[Option<OwnerToken>; Line::ALL.len()],
        freed: &[Class],
    ) -> Option<(OwnerToken, Line)> {
        let queue = self.queue()?;
        let tells_all = !self.applies(Rule::OnlyConcernedAreTold) && !freed.is_empty();
        let counts =
            |line: &Line| !line.has_several || tells_all || freed.iter().any(|freed| freed.conflicts_with(line.class));
        let first = |(line, passed): (&Line, &Option<OwnerToken>)| Some((queue.first_behind(*line, *passed)?, *line));
        let firsts = Line::ALL.iter().zip(passed).filter(|(line, _)| counts(line)).filter_map(first);
        firsts.min_by_key(|(token, _)| *token)
    }

    /// Tells `next`, which wants several names, that this one is free, and keeps it for that one. `false` when nobody hears it.
    pub(super) fn nudge(&mut self, next: OwnerToken) -> bool {
        let is_heard = self.notify(next, Notice::Free) > 0;
        if is_heard && self.applies(Rule::FreeNamesAreReserved) {
            self.reserve_for(next);
        }
        is_heard
    }

    /// Gives the name to `next`, which leaves the queue, as a claim. `false` when nobody is there to take it.
    pub(super) fn give_to(&mut self, next: OwnerToken, class: Class, claim: Duration) -> bool {
        self.strike(next);
        self.take(next, class, claim);
        let is_heard = self.announce(next, claim) > 0;
        if !is_heard {
            self.drop_hold_of(next);
        }
        is_heard
    }
}
