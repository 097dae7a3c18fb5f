//! Handling of commands that a member of a cluster does not execute because the slot of the key is elsewhere.
//!
//! A member refuses such a command as a whole and names the reason:
//!
//! - `MOVED`: another member has the slot.
//! - `ASK`: the slot is moving to another member, and the key is not here any longer.
//! - `TRYAGAIN`: the slot is moving, and only some keys of the command are here. A lock and its queue are nearly always in this state.
//!
//! The rules:
//!
//! 1. A command that was refused with `MOVED` or `ASK` is queued at the named member. After `ASK`, an `ASKING` goes directly before it. A
//!    command is redirected at most [`MOST`] times. After that, or at a member without a connection, the command has not been executed and
//!    fails with an error that says this. Two members can each redirect it to the other one until an operator repairs the cluster. The
//!    limit ends such a loop after a few round trips.
//! 2. A command that was refused with `TRYAGAIN` is sent once more to the member that has the slot. This is the member that refused the
//!    command, or the member that had sent it there with `ASK`, even if the map names another one. The command now names only the lock
//!    ([`Form::Alone`]): its script uses the key of the lock in place of the queue, and finds no queue there. Holders can therefore renew
//!    and release while a slot moves, which may take minutes, and waiters are served by their timers. No queue is created at the new member
//!    while one remains at the old one: the two queues could never be merged. After a release, a separate command removes its token from
//!    the queue.
//! 3. If no caller waits for the reply any longer, the command is not sent again, unless it is the last one about its token. This is
//!    checked under the mutex of the outbox that the command enters, as in `lost_script`, and for the same reason: the last command about
//!    the token may already be queued. An acquisition behind it would take the lock for good. A renewal would undo the early expiry of the
//!    key.
//!
//! **No release is overtaken by an acquisition.** Let A take the lock for a token, and R be its release. The reply to A is dropped before R
//! is sent (`Verb::Acquire`). Only A can do harm after R: all other commands change nothing for a token without a lock, including `Yield`.
//! This holds for any targets of A and R, for any map, and however often the slot moves:
//!
//! - *Both are queued at one member.* If A was queued first, it is executed first or refused there. If R was first, A is redirected after
//!   R. Rule 3 has then seen that no caller waits, and A is not queued.
//! - *A is on its way to one member, and R goes to another one*, because the map has changed or R was redirected. R is executed only at the
//!   member that has the slot, or at its new member for a key that has already left. The member that A is sent to therefore no longer has
//!   the slot, or is moving the slot away and accepts no new key in it. If A finds the key there, the key was brought back from the other
//!   member after A was sent, and R is executed after that. Otherwise A is refused, redirected after R, and rule 3 applies.
//! - *A was executed before the key or the slot moved.* The key moves along, because a member gives up a slot only when it has no key of
//!   the slot left. R finds the key at the new member.
//!
//! The remaining case is not a matter of order but a fault of the cluster: a member accepts writes for a slot that it has lost, as an old
//! master in a network partition does. Its grants vanish when it rejoins, like any grant that is lost in a failover. If a slot returns to a
//! member while A is on its way to it, the key stays until its lease ends.
//!
//! Other commands about a token do not take the lock. They may change places with each other while a slot moves. A candidate sends nothing
//! after a `Yield` without a reply, and its earlier commands prove nothing. An extension finds the token or does not. A redirected
//! extension makes no lease shorter (`lua/late.lua`), because a longer one may have arrived before it.

use super::address::MemberAddress;
use crate::error::NodeError;
use crate::node::redis::question::{Form, Question};
use crate::protocol::command::{Answer, Reply, Verb};
use redis::{ErrorKind, RedisError, ServerErrorKind};
use std::time::Duration;

/// Maximum number of redirections of one command. Too small: a slot that moves twice while a command is on its way causes an error. Too
/// large: members that disagree about a slot delay a command for longer.
pub(in crate::node::redis) const MOST: u8 = 5;

/// Base of the delay after which a caller asks again if the lock is taken and its queue cannot be joined. The delay is one to five times
/// this value, so that the waiters do not all ask together. Too small: more commands while a slot moves. Too large: the next waiter gets
/// the lock later.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Returns the reply of a waiter in the queue whose lock will soon be free.
fn retry_soon_reply() -> Reply {
    Reply::Queued { left: Some(ASK_AGAIN.mul_f64(1.0 + 4.0 * fastrand::f64())), rank: 0 }
}

/// Reason of a member not to execute a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::node::redis) enum Redirection {
    /// This member has the slot.
    Moved(MemberAddress),
    /// This member may have the key, because the slot is moving to it.
    Ask(MemberAddress),
    /// Not all keys of the command are at one member.
    TryAgain,
}

/// Forwards commands to other members.
pub(in crate::node::redis) trait Redirect: Send + Sync {
    /// Forwards `question`, which a member has refused with `error`. Called in the task of that member's connection.
    fn redirect(&self, question: Question, redirection: Redirection, error: &NodeError);

    /// Sends the command that removes the token from its queue at any member, after its release had this `reply`.
    fn leave_queue(&self, question: Question, reply: Reply);

    /// Records that a command was executed that another member had redirected here.
    fn on_redirected_execution(&self);

    /// Requests a new map: the member refused a command for a reason that is specific to it, and may no longer have the slot.
    fn request_map(&self);

    /// Returns the host of the member.
    fn host(&self) -> &str;
}

/// Returns the target of a command, if `error` is a redirection; `answered` is the host of the member that replied.
pub(in crate::node::redis) fn redirection(error: &RedisError, answered: &str) -> Option<Redirection> {
    let ErrorKind::Server(kind) = error.kind() else { return None };
    let named = || error.redirect_node().and_then(|(address, _)| MemberAddress::parse(address, answered));
    match kind {
        ServerErrorKind::Moved => named().map(Redirection::Moved),
        ServerErrorKind::Ask => named().map(Redirection::Ask),
        ServerErrorKind::TryAgain => Some(Redirection::TryAgain),
        _ => None,
    }
}

/// Returns `true` if a command may be forwarded once more.
pub(in crate::node::redis) fn may_be_redirected(question: &Question) -> bool {
    question.redirects < MOST && is_still_wanted(question)
}

/// Returns `true` if a command must be executed although another member has refused it before. This is always so for the last command about
/// a token, and for any other one while a caller waits for the reply.
pub(in crate::node::redis) fn is_still_wanted(question: &Question) -> bool {
    matches!(question.command.verb, Verb::Release { .. } | Verb::Keep { .. }) || !question.recipient.is_gone()
}

/// Converts a command to a form that does not need all keys at one member. Returns `false` if there is none.
pub(in crate::node::redis) fn try_set_alone_form(question: &mut Question) -> bool {
    let proposes = question.command.fence.is_some_and(|ballot| ballot.drawn_at().is_some());
    if !matches!(question.form, Form::Whole | Form::Checked) || proposes || !question.command.subject.is_plain() {
        // A number can be drawn only at the register, and a lock can be shared only at its queue.
        return false;
    }
    // A number that the token has already is sent to nodes that join late. This cluster has no such node.
    question.command.fence = None;
    question.form = Form::Alone;
    true
}

/// Converts a command back to the form with all its keys: at the member with the whole slot, a release can hand the lock over.
pub(in crate::node::redis) fn set_whole_form(question: &mut Question) {
    if question.form == Form::Alone {
        question.form = Form::Whole;
    }
}

/// Returns the reply to a command that needs all of its keys at one member. A waiter continues to wait.
pub(in crate::node::redis) fn unanswerable(question: &Question, error: &NodeError) -> Answer {
    match question.command.verb {
        Verb::Acquire { .. } => Ok(retry_soon_reply()),
        _ => Err(not_executed(error, question.redirects)),
    }
}

/// Returns the error for a command that was not executed, because of this reply of a member after `redirects` redirections. A retry may
/// succeed.
pub(in crate::node::redis) fn not_executed(error: &NodeError, redirects: u8) -> NodeError {
    match error {
        NodeError::Refused(answer) if redirects >= MOST => NodeError::Refused(format!("{IN_CIRCLES}: {answer}").into()),
        NodeError::Refused(answer) if !error.is_transient() => {
            NodeError::Refused(format!("{ON_ITS_WAY}: {answer}").into())
        }
        error => error.clone(),
    }
}

const ON_ITS_WAY: &str = "TRYAGAIN the slot of the key is on its way";
const IN_CIRCLES: &str = "TRYAGAIN the members of the cluster send the command to one another; if this lasts, they \
                          disagree about the owner of the slot: run redis-cli --cluster check";

/// Next step after a reply.
pub(in crate::node::redis) enum Next {
    /// The caller gets the reply.
    Answer(Answer),
    /// The release had this reply, and must still be removed from the queue.
    LeaveQueue(Reply),
}

/// Returns the next step after the `answer` to `question`, whose script may have had the key of the lock in place of its queue.
pub(in crate::node::redis) fn next(question: &Question, answer: Answer) -> Next {
    if question.form != Form::Alone {
        return Next::Answer(answer);
    }
    match (question.command.verb, answer) {
        (Verb::Release { .. }, Ok(reply)) => Next::LeaveQueue(reply),
        // The command has notified the holder that it waits, and could not join the queue.
        (Verb::Acquire { .. }, Ok(Reply::Queued { .. })) => Next::Answer(Ok(retry_soon_reply())),
        // The command tried to join the queue of a lock of another program, and found that lock in place of the queue.
        (Verb::Acquire { .. }, Err(NodeError::Refused(error))) if error.contains("WRONGTYPE") => {
            Next::Answer(Ok(retry_soon_reply()))
        }
        (_, answer) => Next::Answer(answer),
    }
}

/// Returns `true` if a member refuses to serve at all: it is cut off from the others, or follows one of them.
pub(in crate::node::redis) fn is_refusal_to_serve(error: &NodeError) -> bool {
    let answers = ["CLUSTERDOWN ", "READONLY ", "MASTERDOWN "];
    matches!(error, NodeError::Refused(answer) if answers.iter().any(|start| answer.contains(start)))
}

/// Returns `true` for the error of a script that has met a key which is not at this member. The script may have written before.
pub(in crate::node::redis) fn is_torn(error: &NodeError) -> bool {
    matches!(error, NodeError::Refused(answer) if answer.contains("a non local key"))
}

#[cfg(test)]
mod tests;
