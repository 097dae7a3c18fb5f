//! Somebody breaks a lock that this process may have: whoever has it asks the nodes at once.
//!
//! What is said here proves nothing, because anybody may publish it. A lock that is held all the same goes on; one that is idle
//! is given back, which is no harm to anybody.

use crate::client::local_queue::LocalQueue;
use crate::client::shared::Shared;
use crate::lock::OwnerToken;
use crate::protocol::command::{Notice, Subject};
use crate::protocol::rules::Rule;
use std::sync::Arc;

/// Somebody says by node number `index` that he breaks the lock in `subject`, and that `by` has its place there. Whether this
/// process knows that token.
pub(crate) fn revoked(local: &Arc<LocalQueue>, index: usize, subject: &Subject, by: OwnerToken) -> bool {
    let Some(ours) = local.find(subject).filter(|ours| ours.notice(index, Notice::Revoked { by })) else {
        return is_dead(local.shared(), subject, by);
    };
    if !local.shared().rules.apply(Rule::StoppedIsSaidByTheEnd) {
        local.shared().tell_stopped(&Subject::new(subject.key.clone(), by));
    }
    if !local.recall(&ours, by) {
        // It asks, and looks for the answer.
        local.look_at(&ours);
    }
    true
}

/// A token of this process that no line names, or that has ended, is dead: there is no body to stop, or none any more, which is said
/// at once. But the body of one that was superseded may be at work, and what stands there for a lock that is broken from here keeps
/// it for a holder that may be: those say it when it is so. Whether this process knows the token.
fn is_dead(shared: &Shared, Subject { key, token, .. }: &Subject, by: OwnerToken) -> bool {
    if !token.is_of(shared.id) {
        return false;
    }
    let will_say = shared.revocations.will_say(token, by);
    let says = shared.rules.apply(Rule::DeadTokensSaySo) || shared.kept_tokens.is_kept(token, shared.clock.now());
    if says && !will_say {
        shared.tell_stopped(&Subject::new(key.clone(), by));
    }
    true
}
