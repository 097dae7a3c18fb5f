//! What becomes of a command that a member of a cluster does not execute, because the slot of its key is elsewhere.
//!
//! A member refuses such a command as a whole and says where to go: `MOVED` when another member has the slot; `ASK` when the
//! slot is on its way to another one and the key is not here any more; `TRYAGAIN` when the slot is on its way and of the
//! names of a command some are here and some are not, which is so of a lock and its queue nearly always.
//!
//! 1. A command that was refused with `MOVED` or `ASK` is put into the order of the member that was named, behind an
//!    `ASKING` in the second case, with nothing between the two. It goes on so at most [`MOST`] times. A command that ends
//!    there, or meets a member without a connection, has not been executed and is answered so. Two members that each send it
//!    to the other one, which nothing mends but an operator, are so left after a few round trips.
//! 2. A command that was refused with `TRYAGAIN` is sent once more to the member that has the slot, which is who has refused it or
//!    has sent it to who has, whatever the map says; and in a form that names the lock alone ([`Form::Alone`]): whatever its script would do with the queue it does with the name of the lock, where it
//!    finds none. So holders renew and release while a slot is on its way, which may take minutes; whoever waits comes by
//!    its timers; and no queue is made at the new member while one is left at the old one, which could never be brought
//!    together. A release takes its token out of the queue after that by a command of its own.
//! 3. A command other than the last one about a token is not sent again when nobody waits for its answer any more. That is looked at under the
//!    mutex of the outbox that it goes into, as in `lost_script`, and for the same reason: the last command about the token may
//!    stand in the order already. One that takes the lock would take it for good then, and a renewal would undo that the key
//!    ends soon.
//!
//! **No release is overtaken by an acquisition.** Let A take the lock for a token, and R be its release. The answer to A is
//! dropped before R is sent (`Verb::Acquire`), and only A can do harm behind R: all other commands change nothing for a token
//! that has no lock, `Yield` included. Wherever A and R are sent, by whatever map, and however often the slot moves:
//!
//! - *Both are put into the order of one member.* If A was put in first, it is executed first or refused there. If R was,
//!   A is redirected after R, and rule 3 has seen that nobody waits: it is not put in.
//! - *A is on its way to a member, and R goes to another one*, because the map has changed or R was redirected. R is executed
//!   only where the slot is, or is coming to for a key that has left. So the member that A is sent to does not have the slot
//!   any more, or sends it away and takes no new key in it: A finds the key there only if it was brought from there later than
//!   A, and then R is executed behind that. Otherwise A is refused, redirected after R, and rule 3 holds.
//! - *A was executed before the key or the slot went elsewhere.* The key goes along, since a member gives up a slot only when
//!   no key is left in it; R finds it there.
//!
//! What is left is no order of commands but a fault of the cluster: a member that takes writes for a slot which it has lost,
//! as an old master that is cut off does. What it grants is gone when it comes back, and counts as any grant that was lost in
//! a failover. A slot that comes back to a member while A is on its way to it leaves the key until its lease ends.
//!
//! Commands about one token that do not take the lock may change places with others where a slot moves between them. A
//! candidate sends nothing behind a `Yield` that is not answered, and what it has sent before proves nothing; extensions
//! find the token or do not, and those that were sent elsewhere before make no lease shorter (`lua/late.lua`), since a longer
//! one may have come before them.

use super::address::MemberAddress;
use crate::error::NodeError;
use crate::node::redis::question::{Form, Question};
use crate::protocol::command::{Answer, Reply, Verb};
use redis::{ErrorKind, RedisError, ServerErrorKind};
use std::time::Duration;

/// How often one command is redirected. Fewer, and a slot that moves twice while a command is on its way costs an error;
/// more, and members that disagree on where a slot is keep a command for longer.
pub(in crate::node::redis) const MOST: u8 = 5;

/// When who has found a lock taken asks again while it cannot wait in the queue: after one to five times as long, so that all who
/// wait do not ask together. Smaller, more commands while a slot is on its way; larger, the next one has the lock later.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// As if it stood in the queue, and the lock were free soon.
fn ask_later() -> Reply {
    Reply::Queued { left: Some(ASK_AGAIN.mul_f64(1.0 + 4.0 * fastrand::f64())), rank: 0 }
}

/// Why a member has not executed a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::node::redis) enum Redirection {
    /// This member has the slot.
    Moved(MemberAddress),
    /// This member may have the key, since the slot is on its way to it.
    Ask(MemberAddress),
    /// Not all keys of the command are at one member.
    TryAgain,
}

/// Sends commands to other members.
pub(in crate::node::redis) trait Redirect: Send + Sync {
    /// Sends `question` on, which a member has refused with `error`. Called in the task of that member's connection.
    fn redirect(&self, question: Question, redirection: Redirection, error: &NodeError);

    /// Sends what takes the token out of its queue, wherever that is, after its release has had this `reply`.
    fn leave_queue(&self, question: Question, reply: Reply);

    /// A command was executed that another member had sent here.
    fn executed_elsewhere(&self);

    /// The member has refused a command for a reason that others would not have: it may not have the slot any more.
    fn want_map(&self);

    /// The host of the member.
    fn host(&self) -> &str;
}

/// Where a command is to go, if `error` says that; `answered` is the host of the member that does.
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

/// Whether a command may be sent on once more.
pub(in crate::node::redis) fn may_be_redirected(question: &Question) -> bool {
    question.redirects < MOST && is_wanted_still(question)
}

/// Whether a command is to be executed although another member has refused it before: the last one about a token always, and any
/// other one for as long as somebody waits for the answer.
pub(in crate::node::redis) fn is_wanted_still(question: &Question) -> bool {
    matches!(question.command.verb, Verb::Release { .. } | Verb::Keep { .. }) || !question.recipient.is_gone()
}

/// Brings a command into a form for which its keys need not be together. `false` when there is none.
pub(in crate::node::redis) fn make_alone(question: &mut Question) -> bool {
    let proposes = question.command.fence.is_some_and(|ballot| ballot.drawn_at().is_some());
    if question.form != Form::Whole || proposes || !question.command.subject.is_plain() {
        // A number can be drawn only where the register is, and a lock be shared only where its queue is.
        return false;
    }
    // A number that the token has already is told to nodes that come late, and there is none in this cluster.
    question.command.fence = None;
    question.form = Form::Alone;
    true
}

/// Brings a command back into the form that names all its keys: where the whole slot is, a release can hand the lock over.
pub(in crate::node::redis) fn make_whole(question: &mut Question) {
    if question.form == Form::Alone {
        question.form = Form::Whole;
    }
}

/// The answer to a command whose keys are not together, and which needs all of them. Who waits for the lock goes on with that.
pub(in crate::node::redis) fn unanswerable(question: &Question, error: &NodeError) -> Answer {
    match question.command.verb {
        Verb::Acquire { .. } => Ok(ask_later()),
        _ => Err(not_executed(error, question.redirects)),
    }
}

/// That a command was not executed, because of this answer of a member after so many `redirects`; another try may have more
/// luck.
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

/// What becomes of an answer.
pub(in crate::node::redis) enum Next {
    /// Whoever asked gets it.
    Answer(Answer),
    /// The release has done this, and could not leave the queue.
    LeaveQueue(Reply),
}

/// What becomes of the `answer` to `question`, whose script was perhaps given the name of the lock in place of its queue.
pub(in crate::node::redis) fn next(question: &Question, answer: Answer) -> Next {
    if question.form != Form::Alone {
        return Next::Answer(answer);
    }
    match (question.command.verb, answer) {
        (Verb::Release { .. }, Ok(reply)) => Next::LeaveQueue(reply),
        // It has told who has the lock that it waits, and could not join the queue.
        (Verb::Acquire { .. }, Ok(Reply::Queued { .. })) => Next::Answer(Ok(ask_later())),
        // It would have joined the queue of a lock that another program has, and has found that lock there.
        (Verb::Acquire { .. }, Err(NodeError::Refused(error))) if error.contains("WRONGTYPE") => {
            Next::Answer(Ok(ask_later()))
        }
        (_, answer) => Next::Answer(answer),
    }
}

/// Whether a member refuses to serve at all: it is cut off from the others, or follows one of them.
pub(in crate::node::redis) fn is_out_of_office(error: &NodeError) -> bool {
    let answers = ["CLUSTERDOWN ", "READONLY ", "MASTERDOWN "];
    matches!(error, NodeError::Refused(answer) if answers.iter().any(|start| answer.contains(start)))
}

/// The error of a script that has met a key which is not at this member: it may have done something before.
pub(in crate::node::redis) fn is_torn(error: &NodeError) -> bool {
    matches!(error, NodeError::Refused(answer) if answer.contains("a non local key"))
}

#[cfg(test)]
mod tests;
