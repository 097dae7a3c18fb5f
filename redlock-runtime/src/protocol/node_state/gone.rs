//! Waiters whose processes are gone.
//!
//! A wake-up that no process receives shows that the manager of the waiter is gone, or does not listen at the moment. All its
//! waiters are removed from the queue: a live manager puts them back, in the same place, when it asks again.
//!
//! 1. Each manager is notified once per command. An absent waiter takes those of all absent managers among the next waiters with it, so
//!    that crowds of few dead processes cost few steps.
//! 2. A command looks at [`Limits::gone`](super::limits::Limits::gone) absent waiters. If there are more, the command is *unfinished*:
//!    the reply asks the client to send it again. The server serves other clients in between.

use super::Execution;
use super::limits::MOST_GONE;
use super::queue::Line;
use crate::lock::OwnerToken;

/// Absent managers that one command has found.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// A token of each.
    found: Vec<OwnerToken>,
    looks: usize,
}

impl Gone {
    fn contains(&self, token: OwnerToken) -> bool {
        self.found.iter().any(|gone| gone.manager() == token.manager())
    }
}

impl Execution<'_> {
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
}
