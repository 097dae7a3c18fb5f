//! Letting those in who wait, where some of them share a name or want several.
//!
//! Who wants one name is given it, as a claim. Who wants several is told that this one is free, and asks for all of them: the
//! others may be names that the command does not know. So nobody has a part of what it wants while it waits for the rest.

use super::Execution;
use super::Queue;
use super::queue::{Line, Untold};
use crate::lock::OwnerToken;
use crate::lock::class::Class;
use crate::protocol::command::Notice;
use crate::protocol::rules::Rule;
use std::ops::Bound;
use std::time::Duration;

/// Something of each line, by its score.
type OfLines<T> = [T; Line::ALL.len()];

fn set<T>(of_lines: &mut OfLines<T>, line: Line, value: T) {
    if let Some(place) = of_lines.get_mut(line.score()) {
        *place = value;
    }
}

/// What has become of a waiter that was looked at.
enum Step {
    In,
    /// Nobody was there.
    Gone,
    /// It stays where it is.
    Passed,
}

impl Execution<'_> {
    /// Gives the name to those in the queue who can have it now, the earliest first: as claims to one that wants it alone, or to
    /// all those together who go with each other and have come before that one. Whose process is gone is passed over.
    ///
    /// `own_ttl` is for the token of the command: a lease and not a claim, without a wake-up. Whether it was among them. What has
    /// `freed` the name, if anything has, is a reason to tell those who want several: whoever goes with it was not kept out by it.
    /// Those who are too many to be told at once are told by the next command that comes here, as those do that were told.
    pub(super) fn promote(&mut self, claim: Duration, own_ttl: Option<Duration>, freed: Option<Class>) -> bool {
        let mut freed: Vec<Class> = freed.into_iter().collect();
        let (mut passed, untold) = self.left_to_tell(&freed);
        // Whoever keeps the first of a line out keeps out all behind it.
        let mut kept_out = [false; Line::ALL.len()];
        let (mut has_own, mut has_shared, mut steps) = (false, false, 0);
        loop {
            if self.owner().is_some() || has_shared && !self.applies(Rule::ReadersTogether) {
                break;
            }
            let looked_at = self.looked_at(&freed, untold, kept_out);
            let Some((next, line)) = self.next_waiter(&passed, looked_at) else { break };
            if steps == self.state.limits.steps || self.is_unfinished() {
                self.tell_later(next, looked_at);
                break;
            }
            if self.has_share(next) {
                // A claim would end its lease early. It stands in the queue all the same when a late command has come in between.
                self.strike(next);
                continue;
            }
            let is_taken = self.is_taken_from(next, line.class) && self.applies(Rule::HoldersAreLeftAlone);
            let is_kept_out = is_taken || self.is_behind(next, line.class);
            let step = if is_kept_out {
                Step::Passed
            } else if line.has_several {
                self.tell(next)
            } else if let Some(ttl) = own_ttl.filter(|_| next == self.token) {
                has_own = true;
                self.strike(next);
                let ttl = if self.applies(Rule::OwnTurnIsALease) { ttl } else { claim };
                self.take(next, line.class, ttl);
                has_shared |= line.class == Class::Shared;
                Step::In
            } else {
                let is_heard = self.give_to(next, line.class, claim);
                steps += usize::from(is_heard);
                has_shared |= is_heard && line.class == Class::Shared;
                if is_heard { Step::In } else { Step::Gone }
            };
            match step {
                Step::In => {}
                Step::Gone => {
                    self.strike_gone(next, line);
                    freed.push(line.class);
                    for (other, kept_out) in Line::ALL.iter().zip(&mut kept_out) {
                        *kept_out &= !line.class.conflicts_with(other.class);
                    }
                }
                // Everybody else has come later, and does not go with it.
                Step::Passed if line.class == Class::Exclusive => break,
                Step::Passed if is_kept_out => set(&mut kept_out, line, true),
                Step::Passed => {
                    steps += 1;
                    set(&mut passed, line, Bound::Excluded(next));
                }
            }
        }
        has_own
    }

    /// Tells somebody who wants several names that this one is free, unless the token of the command is meant. Whose process is
    /// gone leaves, which may free the name for others.
    fn tell(&mut self, next: OwnerToken) -> Step {
        if next == self.token || self.nudge(next) { Step::Passed } else { Step::Gone }
    }

    /// Where to begin with those of each line, and of which lines some are still to be told. What has `freed` the name now is a
    /// reason to begin anew.
    fn left_to_tell(&mut self, freed: &[Class]) -> (OfLines<Bound<OwnerToken>>, OfLines<bool>) {
        let mut passed = [Bound::Unbounded; Line::ALL.len()];
        let untold = self.queue_mut().and_then(Queue::take_untold);
        if let Some(Untold { from, lines }) = untold {
            for ((line, passed), is_untold) in Line::ALL.iter().zip(&mut passed).zip(lines) {
                if is_untold && !self.is_told_of(*line, freed) {
                    *passed = Bound::Included(from);
                }
            }
        }
        (passed, untold.map_or([false; Line::ALL.len()], |untold| untold.lines))
    }

    /// The next command tells those of the lines that are looked at who want several names, from `from` on.
    fn tell_later(&mut self, from: OwnerToken, looked_at: OfLines<bool>) {
        let mut lines = looked_at;
        for (line, is_untold) in Line::ALL.iter().zip(&mut lines) {
            *is_untold &= line.has_several;
        }
        let is_needed = lines.contains(&true) && self.applies(Rule::ThoseLeftAreTold);
        if let Some(queue) = self.queue_mut().filter(|_| is_needed) {
            queue.tell_later(Untold { from, lines });
        }
    }

    /// Which lines are looked at: those that want one name, and those that are to be told; but none that is `kept_out`.
    fn looked_at(&self, freed: &[Class], untold: OfLines<bool>, kept_out: OfLines<bool>) -> OfLines<bool> {
        let mut looked_at = untold;
        for ((line, is), is_kept_out) in Line::ALL.iter().zip(&mut looked_at).zip(kept_out) {
            *is = !is_kept_out && (*is || !line.has_several || self.is_told_of(*line, freed));
        }
        looked_at
    }

    /// Whether those of this line are told of what has `freed` the name.
    fn is_told_of(&self, line: Line, freed: &[Class]) -> bool {
        let tells_all = !self.applies(Rule::OnlyConcernedAreTold) && !freed.is_empty();
        tells_all || freed.iter().any(|freed| freed.conflicts_with(line.class))
    }

    /// The first who wants the name, of those who are to be looked at and were not passed over.
    fn next_waiter(&self, passed: &OfLines<Bound<OwnerToken>>, looked_at: OfLines<bool>) -> Option<(OwnerToken, Line)> {
        let queue = self.queue()?;
        let first = |((line, passed), is_looked_at): ((&Line, &Bound<OwnerToken>), bool)| {
            Some((queue.first_behind(*line, *passed).filter(|_| is_looked_at)?, *line))
        };
        let firsts = Line::ALL.iter().zip(passed).zip(looked_at).filter_map(first);
        firsts.min_by_key(|(token, _)| *token)
    }

    /// Tells `next`, which wants several names, that this one is free, and keeps it for that one. `false` when nobody hears it.
    pub(super) fn nudge(&mut self, next: OwnerToken) -> bool {
        let is_heard = !self.is_gone(next) && self.notify(next, Notice::Free) > 0;
        if is_heard && self.applies(Rule::FreeNamesAreReserved) {
            self.reserve_for(next);
        }
        is_heard
    }

    /// Gives the name to `next`, which leaves the queue, as a claim. `false` when nobody is there to take it.
    pub(super) fn give_to(&mut self, next: OwnerToken, class: Class, claim: Duration) -> bool {
        self.strike(next);
        if self.is_gone(next) {
            return false;
        }
        self.take(next, class, claim);
        let is_heard = self.announce(next, claim) > 0;
        if !is_heard {
            self.drop_hold_of(next);
        }
        is_heard
    }
}
