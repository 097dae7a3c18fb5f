//! Admission of waiters to a name that several tokens share, or that is one of several wanted names.
//!
//! A waiter for one name is given the name, as a claim. A waiter for several names is notified that this one is free,
//! and asks for all of them: the command may not know the other names. So a waiter never owns some of its names while
//! it waits for the others.

use super::Execution;
use super::Queue;
use super::queue::{Line, Untold};
use crate::lock::OwnerToken;
use crate::lock::class::Class;
use crate::protocol::command::Notice;
use crate::protocol::rules::Rule;
use std::ops::Bound;
use std::time::Duration;

/// One value for each line, by its score.
type OfLines<T> = [T; Line::ALL.len()];

fn set<T>(of_lines: &mut OfLines<T>, line: Line, value: T) {
    if let Some(place) = of_lines.get_mut(line.score()) {
        *place = value;
    }
}

/// Outcome for one examined waiter.
enum Step {
    In,
    /// Waiter is absent.
    Gone,
    /// Waiter keeps its place.
    Passed,
}

impl Execution<'_> {
    /// Gives the name to the queued tokens that can have it now, the earliest first. As claims, it goes to one
    /// exclusive waiter, or to all compatible waiters that come before the first incompatible one. Waiters of absent
    /// processes are passed over.
    ///
    /// `own_ttl` is the lease for the token of the command: a lease instead of a claim, without a wake-up. Returns
    /// `true` if that token got the name. If a class has `freed` the name, waiters for several names are notified that
    /// conflict with it; the others were not blocked by it. If they are too many for one command, the next command at
    /// this name notifies the rest, and so do the notified waiters.
    pub(super) fn promote(&mut self, claim: Duration, own_ttl: Option<Duration>, freed: Option<Class>) -> bool {
        let mut freed: Vec<Class> = freed.into_iter().collect();
        let (mut passed, untold) = self.left_to_tell(&freed);
        // An obstacle for the first waiter of a line is an obstacle for all behind it.
        let mut kept_out = [false; Line::ALL.len()];
        let (mut has_own, mut has_shared, mut steps) = (false, false, 0);
        loop {
            // An exclusive owner ends the admission.
            if self.owner().is_some() || has_shared && !self.applies(Rule::ReadersTogether) {
                break;
            }
            // The earliest waiter of all examined lines is next.
            let looked_at = self.looked_at(&freed, untold, kept_out);
            let Some((next, line)) = self.next_waiter(&passed, looked_at) else { break };
            // At the limit of one command, the rest is left to the next command.
            if steps == self.state.limits.steps || self.is_unfinished() {
                self.notify_later(next, looked_at);
                break;
            }
            if self.has_share(next) {
                // A claim would end its lease early. It may still be queued after a late command.
                self.strike(next);
                continue;
            }
            // A conflicting holder or an earlier conflicting waiter is an obstacle.
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
                // Any other waiter for one name gets it as a claim, if its process listens.
                let is_heard = self.give_to(next, line.class, claim);
                steps += usize::from(is_heard);
                has_shared |= is_heard && line.class == Class::Shared;
                if is_heard { Step::In } else { Step::Gone }
            };
            match step {
                Step::In => {}
                Step::Gone => {
                    // An absent waiter may have been the obstacle for others, as if its class had freed the name.
                    self.strike_gone(next, line);
                    if !freed.contains(&line.class) {
                        freed.push(line.class);
                    }
                    for (other, kept_out) in Line::ALL.iter().zip(&mut kept_out) {
                        *kept_out &= !line.class.conflicts_with(other.class);
                    }
                }
                // All others come later and conflict with this one.
                Step::Passed if line.class == Class::Exclusive => break,
                Step::Passed if is_kept_out => set(&mut kept_out, line, true),
                Step::Passed => {
                    // A notified waiter keeps its place; the search in its line continues behind it.
                    steps += 1;
                    set(&mut passed, line, Bound::Excluded(next));
                }
            }
        }
        has_own
    }

    /// Notifies a waiter for several names that this one is free, unless it is the token of the command. A waiter of an
    /// absent process is removed, which may free the name for others.
    fn tell(&mut self, next: OwnerToken) -> Step {
        if next == self.token || self.nudge(next) { Step::Passed } else { Step::Gone }
    }

    /// Returns the starting point in each line, and the lines with waiters that must still be notified. If a
    /// conflicting class has `freed` the name now, the line starts again at its beginning.
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

    /// Leaves it to the next command to notify the waiters for several names in the examined lines, from `from` on.
    fn notify_later(&mut self, from: OwnerToken, looked_at: OfLines<bool>) {
        let mut lines = looked_at;
        for (line, is_untold) in Line::ALL.iter().zip(&mut lines) {
            *is_untold &= line.has_several && self.queue().is_some_and(|queue| queue.has_waiters(*line));
        }
        let is_needed = lines.contains(&true) && self.applies(Rule::ThoseLeftAreTold);
        if let Some(queue) = self.queue_mut().filter(|_| is_needed) {
            queue.notify_later(Untold { from, lines });
        }
    }

    /// Returns the lines to examine: those for one name, and those that must be notified, but none that is `kept_out`.
    fn looked_at(&self, freed: &[Class], untold: OfLines<bool>, kept_out: OfLines<bool>) -> OfLines<bool> {
        let mut looked_at = untold;
        for ((line, is), is_kept_out) in Line::ALL.iter().zip(&mut looked_at).zip(kept_out) {
            *is = !is_kept_out && (*is || !line.has_several || self.is_told_of(*line, freed));
        }
        looked_at
    }

    /// Returns `true` if the waiters of this line are notified of the class that has `freed` the name.
    fn is_told_of(&self, line: Line, freed: &[Class]) -> bool {
        let tells_all = !self.applies(Rule::OnlyConcernedAreTold) && !freed.is_empty();
        tells_all || freed.iter().any(|freed| freed.conflicts_with(line.class))
    }

    /// Returns the first waiter in the examined lines that was not passed over.
    fn next_waiter(&self, passed: &OfLines<Bound<OwnerToken>>, looked_at: OfLines<bool>) -> Option<(OwnerToken, Line)> {
        let queue = self.queue()?;
        let first = |((line, passed), is_looked_at): ((&Line, &Bound<OwnerToken>), bool)| {
            Some((queue.first_behind(*line, *passed).filter(|_| is_looked_at)?, *line))
        };
        let firsts = Line::ALL.iter().zip(passed).zip(looked_at).filter_map(first);
        firsts.min_by_key(|(token, _)| *token)
    }

    /// Notifies `next`, which wants several names, that this one is free, and reserves the name for it. Returns `false`
    /// if its process does not listen.
    pub(super) fn nudge(&mut self, next: OwnerToken) -> bool {
        let is_heard = !self.is_gone(next) && self.notify(next, Notice::Free) > 0;
        if is_heard && self.applies(Rule::FreeNamesAreReserved) {
            self.reserve_for(next);
        }
        is_heard
    }

    /// Removes `next` from the queue and gives it the name as a claim. Returns `false` if its process does not listen.
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
