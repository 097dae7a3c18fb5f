//! Waiters whose processes are gone.
//!
//! A wake-up that no process receives shows that the manager of the waiter is gone, or does not listen at the moment. Each of its waiters
//! is removed from the queue when its turn comes. A live manager puts them back, in the same place, when it asks again.
//!
//! 1. Each manager is notified once per command. Its other waiters are removed without a notification.
//! 2. A command has a budget for absent waiters, [`Limits::gone`](super::limits::Limits::gone). Most of them cost [`FINDING_COST`]. A waiter
//!    for one name costs 1 if its manager is known to be absent and it waits right behind another absent waiter of its line. The server
//!    removes such waiters together.
//! 3. If the budget is spent, the command is *unfinished*: the reply asks the client to send it again. The server serves other clients in
//!    between.

use super::limits::FINDING_COST;
use super::queue::Line;
use crate::lock::OwnerToken;

/// Absent managers that one command has found.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// One token of each absent manager.
    found: Vec<OwnerToken>,
    /// The spent part of the budget.
    pub(super) spent: usize,
    /// Line of the last absent waiter.
    last_line: Option<Line>,
}

impl Gone {
    pub(super) fn contains(&self, token: OwnerToken) -> bool {
        self.found.iter().any(|gone| gone.manager() == token.manager())
    }

    /// Counts an absent waiter of a line.
    pub(super) fn count(&mut self, token: OwnerToken, line: Line) {
        let is_known = self.contains(token);
        let is_cheap = is_known && self.last_line == Some(line) && !line.has_several;
        self.spent += if is_cheap { 1 } else { FINDING_COST };
        self.last_line = Some(line);
        if !is_known {
            self.found.push(token);
        }
    }

    /// Counts a waiter whose manager listens, but has not asked for a while.
    pub(super) const fn count_silent(&mut self) {
        self.spent += FINDING_COST;
    }
}
