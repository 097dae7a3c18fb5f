//! Somebody breaks a lock that this process may have: whoever has it asks the nodes at once.
//!
//! What is said here proves nothing, because anybody may publish it. A lock that is held all the same goes on; one that is idle
//! is given back, which is no harm to anybody.

use crate::client::local_queue::LocalQueue;
use crate::lock::OwnerToken;
use crate::protocol::command::{Notice, Subject};
use std::sync::Arc;

/// The lock in `subject` is broken at node number `index`, `by` another token. Whether this process knows that token.
pub(crate) fn revoked(local: &Arc<LocalQueue>, index: usize, subject: &Subject, by: OwnerToken) -> bool {
    let ours = local.acquisition(subject.key.name()).filter(|ours| *ours.token() == subject.token);
    let Some(ours) = ours.filter(|ours| ours.notice(index, Notice::Revoked { by })) else { return false };
    if !local.recall(&ours, by) {
        // It asks, and looks for the answer.
        local.look_at(&subject.key);
    }
    true
}
