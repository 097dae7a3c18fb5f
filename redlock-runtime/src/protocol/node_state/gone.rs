//! Waiters whose processes are gone.
//!
//! A wake-up that no process receives shows that the manager of the waiter is gone, or does not listen at the moment. All its
//! waiters are removed from the queue: a live manager puts them back, in the same place, when it asks again.
//!
//! 1. Each manager is notified once per command. An absent waiter takes those of all absent managers among the next waiters with it, so
//!    that crowds of few dead processes cost few steps.
//! 2. A command looks at [`Limits::gone`](super::limits::Limits::gone) absent waiters. If there are more, the command is *unfinished*:
//!    the reply asks the client to send it again. The server serves other clients in between.

use crate::lock::OwnerToken;

/// Absent managers that one command has found.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// One token of each absent manager.
    pub(super) found: Vec<OwnerToken>,
    pub(super) looks: usize,
}

impl Gone {
    pub(super) fn contains(&self, token: OwnerToken) -> bool {
        self.found.iter().any(|gone| gone.manager() == token.manager())
    }
}
