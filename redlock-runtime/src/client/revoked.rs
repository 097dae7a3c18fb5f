//! Break messages about locks of this process: their holders ask the nodes at once.
//!
//! Such a message proves nothing, because anyone may publish it. A held lock that the nodes confirm stays held. An idle
//! lock is released, which is harmless.

use crate::client::local_queue::LocalQueue;
use crate::client::shared::Shared;
use crate::lock::OwnerToken;
use crate::protocol::command::{Notice, Subject};
use crate::protocol::rules::Rule;
use std::sync::Arc;

/// Handles a message from node number `index` that the lock in `subject` is being broken, and that `by` has its place
/// there. Returns `true` if this process knows the token.
pub(crate) fn revoked(local: &Arc<LocalQueue>, index: usize, subject: &Subject, by: OwnerToken) -> bool {
    let Some(ours) = local.find(subject).filter(|ours| ours.notice(index, Notice::Revoked { by })) else {
        return is_dead(local.shared(), subject, by);
    };
    if !local.shared().rules.apply(Rule::StoppedIsSaidByTheEnd) {
        local.shared().notify_stopped(&Subject::new(subject.key.clone(), by));
    }
    if !local.recall(&ours, by) {
        // The token asks the nodes, and its answers are examined.
        local.look_at(&ours);
    }
    true
}

/// Handles a token of this process that is in no local queue, or has ended. It has no running body, which is reported
/// at once. There are two exceptions, whose end is reported later. The body of a superseded token may still run. A
/// placeholder keeps a lock for a holder that may still run. Anyone may publish such messages, so their number is
/// limited. Returns `true` if this process knows the token.
fn is_dead(shared: &Shared, Subject { key, token, .. }: &Subject, by: OwnerToken) -> bool {
    if !token.is_of(shared.id) {
        return false;
    }
    let will_say = shared.revocations.will_say(token, by);
    let says = shared.rules.apply(Rule::DeadTokensSaySo) || shared.kept_tokens.is_kept(token, shared.clock.now());
    if says && !will_say && shared.revocations.may_answer(shared.clock.now()) {
        shared.notify_stopped(&Subject::new(key.clone(), by));
    }
    true
}
