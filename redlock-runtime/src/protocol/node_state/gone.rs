//! Waiters whose processes are gone.
//!
//! A wake-up that no process receives shows that the manager of the waiter is gone, or does not listen at the moment. All its
//! waiters are removed from the queue: a live manager puts them back, in the same place, when it asks again.
//!
//! 1. Each manager is notified once per command. Its other waiters are removed without a notification when their turn comes.
//! 2. A command has a budget for absent waiters, [`Limits::gone`](super::limits::Limits::gone). A waiter whose manager must be notified
//!    costs [`FINDING_COST`], every other one costs 1. If the budget is spent, the command is *unfinished*: the reply asks the client to
//!    send it again. The server serves other clients in between.

use super::limits::FINDING_COST;
use crate::lock::OwnerToken;

/// Absent managers that one command has found.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// One token of each absent manager.
    found: Vec<OwnerToken>,
    /// The spent part of the budget.
    pub(super) spent: usize,
}

impl Gone {
    pub(super) fn contains(&self, token: OwnerToken) -> bool {
        self.found.iter().any(|gone| gone.manager() == token.manager())
    }

    /// Counts a waiter of an absent manager.
    pub(super) fn count(&mut self, token: OwnerToken) {
        if self.contains(token) {
            self.spent += 1;
        } else {
            self.found.push(token);
            self.count_silent();
        }
    }

    /// Counts a waiter whose manager listens, but has not asked for a while.
    pub(super) const fn count_silent(&mut self) {
        self.spent += FINDING_COST;
    }
}
