//! Sends the commands on that one member of a cluster has refused; the rules are in [`redirection`](super::redirection).

use super::address::MemberAddress;
use super::members::{Member, Members};
use super::redirection::{Redirect, Redirection, alone, may_be_redirected, not_executed};
use crate::error::NodeError;
use crate::lock::slot::slot_of;
use crate::node::redis::question::{Form, Question};
use crate::protocol::command::{Reply, Verb};
use std::sync::Weak;

/// For the commands that one member refuses.
pub(super) struct Router {
    members: Weak<Members>,
    /// Where that member is.
    host: Box<str>,
}

impl Router {
    pub(super) fn new(members: Weak<Members>, at: &MemberAddress) -> Self {
        Self { members, host: at.host.clone() }
    }
}

impl Redirect for Router {
    fn redirect(&self, mut question: Question, redirection: Redirection, error: &NodeError) {
        let Some(members) = self.members.upgrade().filter(|_| may_be_redirected(&question)) else {
            return question.answer(Err(not_executed(error)));
        };
        question.redirects += 1;
        let to = match redirection {
            Redirection::Moved(to) => {
                let member = members.member(&to);
                members.want_map(Some(to));
                Ok((question, member, false))
            }
            // Its number would begin a register there, while the one that counts may still be here.
            Redirection::Ask(_) if is_fenced_set(&question) => Err(question),
            Redirection::Ask(to) => Ok((question, members.member(&to), true)),
            Redirection::TryAgain => to_owner(&members, question),
        };
        match to {
            Ok((question, member, is_asking)) => send_on(&member, question, is_asking),
            Err(question) => question.answer(Err(not_executed(error))),
        }
    }

    fn leave_queue(&self, mut question: Question, reply: Reply) {
        (question.form, question.redirects) = (Form::Queue(reply), 0);
        let members = self.members.upgrade();
        match members.and_then(|members| owner(&members, &question)) {
            Some(owner) => send_on(&owner, question, false),
            None => question.answer(Err(NodeError::Disconnected)),
        }
    }

    fn host(&self) -> &str {
        &self.host
    }
}

/// The member that has the slot of the command's key.
fn owner(members: &Members, question: &Question) -> Option<Member> {
    members.routes().member(slot_of(question.command.key())).cloned()
}

/// A command whose keys are not together, in a form for which they need not be, for the member that has the slot.
fn to_owner(members: &Members, question: Question) -> Result<(Question, Member, bool), Question> {
    let Some(owner) = owner(members, &question) else { return Err(question) };
    alone(question).map(|question| (question, owner, false))
}

/// Whether the command is the plain `SET`, with commands about a number behind it.
const fn is_fenced_set(question: &Question) -> bool {
    matches!(question.command.verb, Verb::SetNx { .. }) && question.command.fence.is_some()
}

fn send_on(member: &Member, question: Question, is_asking: bool) {
    match member.connections.live() {
        Ok(live) => live.send_on(question, is_asking),
        Err(error) => question.answer(Err(error)),
    }
}
