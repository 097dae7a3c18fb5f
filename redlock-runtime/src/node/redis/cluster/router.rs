//! Forwards the commands that one member of a cluster has refused; the rules are in [`redirection`](super::redirection).

use super::address::MemberAddress;
use super::members::{Member, Members};
use super::redirection::{
    Redirect, Redirection, may_be_redirected, not_executed, set_whole_form, try_set_alone_form, unanswerable,
};
use crate::error::NodeError;
use crate::lock::slot::slot_of;
use crate::node::redis::question::{Form, Question};
use crate::protocol::command::{Answer, Command, Reply, Verb};
use std::sync::{Arc, Weak};

/// Forwarder for the commands that one member refuses.
pub(super) struct Router {
    members: Weak<Members>,
    /// Address of this member.
    at: MemberAddress,
}

impl Router {
    /// Creates the forwarder for commands that the member at `at` refuses.
    pub(super) fn of(members: &Weak<Members>, at: &MemberAddress) -> Arc<dyn Redirect> {
        Arc::new(Self { members: Weak::clone(members), at: at.clone() })
    }
}

impl Router {
    /// Returns the member that a command goes to, and converts the command to the form for this member.
    ///
    /// # Errors
    /// The reply to a command that is not forwarded: a member has refused it with `error`.
    fn target(
        &self,
        members: &Members,
        question: &mut Question,
        redirection: Redirection,
        error: &NodeError,
    ) -> Result<Member, Answer> {
        let asked_by = question.asked_by.take();
        let member = match redirection {
            Redirection::Moved(to) => {
                let member = members.member(&to);
                members.request_map(Some(to));
                set_whole_form(question);
                member
            }
            // The number of a fenced lock would begin a new register there, while the real one may still be here.
            Redirection::Ask(_) if is_fenced_set(&question.command) => return Err(unanswerable(question, error)),
            Redirection::Ask(to) => {
                question.asked_by = Some(Box::new(self.at.clone()));
                members.member(&to)
            }
            Redirection::TryAgain => {
                let has_the_slot = asked_by.as_deref().unwrap_or(&self.at);
                if !try_set_alone_form(question) {
                    return Err(unanswerable(question, error));
                }
                members.member(has_the_slot)
            }
        };
        member.ok_or_else(|| Err(NodeError::Refused(TO_STRANGERS.into())))
    }
}

/// Refusal of a redirection to one more server than [`MOST_REDIRECTED`](super::members::MOST_REDIRECTED).
const TO_STRANGERS: &str = "TRYAGAIN the members of the cluster send commands to more than 64 servers that are not in CLUSTER SLOTS; \
                            if this lasts, run redis-cli --cluster check";

impl Redirect for Router {
    fn redirect(&self, mut question: Question, redirection: Redirection, error: &NodeError) {
        let Some(members) = self.members.upgrade().filter(|_| may_be_redirected(&question)) else {
            let error = not_executed(error, question.redirects);
            return question.answer(Err(error));
        };
        question.redirects += 1;
        // Recorded before the command is sent there.
        members.settled.disturb();
        match self.target(&members, &mut question, redirection, error) {
            Ok(member) => send_on(&member, question),
            Err(answer) => question.answer(answer),
        }
    }

    fn leave_queue(&self, mut question: Question, reply: Reply) {
        (question.form, question.redirects, question.asked_by) = (Form::Queue(Box::new(reply)), 0, None);
        let members = self.members.upgrade();
        match members.and_then(|members| owner(&members, &question)) {
            Some(owner) => send_on(&owner, question),
            None => question.answer(Err(NodeError::Disconnected)),
        }
    }

    fn on_redirected_execution(&self) {
        if let Some(members) = self.members.upgrade() {
            members.settled.disturb();
        }
    }

    fn request_map(&self) {
        if let Some(members) = self.members.upgrade() {
            members.request_map(None);
        }
    }

    fn host(&self) -> &str {
        &self.at.host
    }
}

/// Returns the member that has the slot of the command's key.
fn owner(members: &Members, question: &Question) -> Option<Member> {
    members.routes().member(slot_of(question.command.key())).cloned()
}

/// Returns `true` if the command is the plain `SET`, followed by commands for a number. Several keys are locked by a script, which receives
/// their registers.
fn is_fenced_set(Command { verb, fence, subject }: &Command) -> bool {
    matches!(verb, Verb::SetNx { .. }) && fence.is_some() && subject.is_plain()
}

fn send_on(member: &Member, question: Question) {
    match member.connections.live() {
        Ok(live) => live.send_on(question),
        Err(error) => question.answer(Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::OwnerToken;
    use crate::lock::class::Class;
    use crate::lock::owner_token::ManagerId;
    use crate::lock::part::Part;
    use crate::lock::parts::Parts;
    use crate::protocol::command::Subject;
    use crate::protocol::timing::CLAIM;
    use crate::time::ballot_clock::Ballot;
    use crate::time::token_clock::TokenTime;

    #[test]
    fn only_a_fenced_plain_set_of_one_key_is_not_redirected_by_ask() {
        let (set, extend) = (Verb::SetNx { ttl: CLAIM }, Verb::Extend { ttl: CLAIM });
        let token = OwnerToken::new(ManagerId::numbered(7), TokenTime::new(1, 0));
        let table = [
            (set, Some(7), vec!["{t}:a"], true),
            (set, None, vec!["{t}:a"], false),
            (extend, Some(7), vec!["{t}:a"], false),
            (set, Some(7), vec!["{t}:a", "{t}:b"], false),
        ];
        for (verb, fence, keys, expected) in table {
            let parts = keys.iter().map(|key| Part::new((*key).into(), Class::Exclusive));
            let subject = Arc::new(Subject::of(&Parts::of(parts).unwrap(), token));
            let command = Command { verb, fence: fence.map(Ballot::known), subject };
            assert_eq!(is_fenced_set(&command), expected, "{verb:?} {fence:?} {keys:?}");
        }
    }
}
