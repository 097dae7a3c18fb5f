//! Commands that wait to be sent on one connection, in their order.
//!
//! A command is put into the outbox by whoever has one, also from `Drop` and from outside of the runtime; that fixes its
//! place in the order.

use crate::error::NodeError;
use crate::node::Recipient;
use crate::protocol::command::{Answer, Command, Verb};
use crate::time::clock::Instant;
use redis::{Cmd, Value};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use tokio::sync::oneshot;

#[derive(Default)]
pub(super) struct Outbox(Mutex<Gathered>);

#[derive(Default)]
struct Gathered {
    commands: Vec<Outgoing>,
    courier: Option<Waker>,
    is_subscribed: bool,
    is_closed: bool,
}

pub(super) struct Outgoing {
    pub(super) wire: Cmd,
    pub(super) asked: Asked,
}

/// What an answer will be the answer to.
pub(super) enum Asked {
    Question(Question),
    Subscription,
    /// About the server, and not about a lock.
    Probe(oneshot::Sender<Result<Value, NodeError>>),
}

/// A command, and where its answer goes.
pub(super) struct Question {
    pub(super) command: Command,
    /// When it was put in, if that matters.
    pub(super) sent: Option<Instant>,
    recipient: Recipient,
    is_repeated: bool,
}

impl Outbox {
    /// Puts `command` into the order of the connection.
    pub(super) fn put(&self, command: Command, wire: Cmd, sent: Option<Instant>, recipient: Recipient) {
        self.put_question(Question { command, sent, recipient, is_repeated: false }, wire);
    }

    /// Asks once more, with another wording, if the answer is still worth it.
    pub(super) fn put_again(&self, question: Question, wire: Cmd) {
        let gathered = self.gathered();
        // Under the mutex: whoever releases the token has either put that in before and is seen to be gone, or puts it
        // behind this.
        if !question.is_worth_repeating() {
            drop(gathered);
            return question.answer(Err(NodeError::Disconnected));
        }
        Self::put_question_into(gathered, Question { is_repeated: true, ..question }, wire);
    }

    fn put_question(&self, question: Question, wire: Cmd) {
        Self::put_question_into(self.gathered(), question, wire);
    }

    fn put_question_into(gathered: MutexGuard<'_, Gathered>, question: Question, wire: Cmd) {
        if gathered.is_closed {
            drop(gathered);
            return question.answer(Err(NodeError::Disconnected));
        }
        Self::put_into(gathered, Outgoing { wire, asked: Asked::Question(question) });
    }

    /// Puts the subscription to `channel` into the order of the connection; only the first time.
    pub(super) fn subscribe(&self, channel: &str) {
        let mut gathered = self.gathered();
        if !mem::replace(&mut gathered.is_subscribed, true) && !gathered.is_closed {
            let mut wire = Cmd::new();
            wire.arg("SUBSCRIBE").arg(channel);
            Self::put_into(gathered, Outgoing { wire, asked: Asked::Subscription });
        }
    }

    fn put_into(mut gathered: MutexGuard<'_, Gathered>, outgoing: Outgoing) {
        gathered.commands.push(outgoing);
        let courier = gathered.courier.take();
        drop(gathered);
        if let Some(courier) = courier {
            courier.wake();
        }
    }

    /// Takes everything out, and sees to it that the next command wakes the courier.
    pub(super) fn take(&self, cx: &Context<'_>) -> Vec<Outgoing> {
        let mut gathered = self.gathered();
        gathered.courier = Some(cx.waker().clone());
        mem::take(&mut gathered.commands)
    }

    /// Puts any command into the order of the connection.
    pub(super) fn probe(&self, wire: Cmd) -> oneshot::Receiver<Result<Value, NodeError>> {
        let (answer, pending) = oneshot::channel();
        let gathered = self.gathered();
        // When it is closed, nobody will answer, and the receiver learns of it.
        if !gathered.is_closed {
            Self::put_into(gathered, Outgoing { wire, asked: Asked::Probe(answer) });
        }
        pending
    }

    /// Ends it: commands that were not sent are answered, and there will be no others.
    pub(super) fn close(&self) {
        let mut gathered = self.gathered();
        gathered.is_closed = true;
        let unsent = mem::take(&mut gathered.commands);
        drop(gathered);
        for outgoing in unsent {
            outgoing.asked.disconnected();
        }
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        // No code that can panic runs under this mutex.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked {
    /// There will be no answer.
    pub(super) fn disconnected(self) {
        if let Self::Question(question) = self {
            question.answer(Err(NodeError::Disconnected));
        }
    }
}

impl Question {
    pub(super) fn answer(self, answer: Answer) {
        self.recipient.answer(answer);
    }

    /// Whether to ask again what was not executed.
    ///
    /// The release of a token may have been sent in between. What takes the lock behind it would do so for a token that
    /// nobody knows any more, and who has left does not wait for its answer.
    pub(super) fn is_worth_repeating(&self) -> bool {
        let takes = matches!(self.command.verb, Verb::Acquire { .. } | Verb::SetNx { .. } | Verb::Adopt { .. });
        let is_abandoned = takes && self.recipient.is_gone();
        !self.is_repeated && !is_abandoned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::OwnerToken;
    use crate::lock::owner_token::ManagerId;
    use crate::node::Pending;
    use crate::protocol::command::Subject;
    use crate::protocol::timing::CLAIM;
    use crate::time::token_clock::TokenTime;
    use std::sync::Arc;
    use std::task::Poll;

    fn put(outbox: &Outbox, verb: Verb) -> Pending {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0));
        let subject = Arc::new(Subject::new("order:7".into(), token));
        let (recipient, pending) = Recipient::task();
        outbox.put(Command { verb, fence: None, subject }, Cmd::new(), None, recipient);
        pending
    }

    fn questions(outbox: &Outbox) -> Vec<Question> {
        let taken = outbox.take(&Context::from_waker(Waker::noop()));
        let questions = taken.into_iter().filter_map(|outgoing| match outgoing.asked {
            Asked::Question(question) => Some(question),
            Asked::Subscription | Asked::Probe(_) => None,
        });
        questions.collect()
    }

    #[test]
    fn a_closed_outbox_answers_what_was_not_sent_and_what_comes_later() {
        let outbox = Outbox::default();
        let release = Verb::Release { claim: CLAIM };
        let mut cx = Context::from_waker(Waker::noop());
        let mut unsent = put(&outbox, release);
        assert!(unsent.poll_answer(&mut cx).is_pending());
        outbox.close();
        for mut pending in [unsent, put(&outbox, release)] {
            assert_eq!(pending.poll_answer(&mut cx), Poll::Ready(Err(NodeError::Disconnected)));
        }
    }

    #[test]
    fn an_acquisition_that_nobody_waits_for_is_not_repeated() {
        let acquire = Verb::Acquire { ttl: CLAIM, claim: CLAIM };
        let adopt = Verb::Adopt { ttl: CLAIM };
        let table = [
            (acquire, false, true),
            (acquire, true, false),
            (Verb::SetNx { ttl: CLAIM }, true, false),
            (adopt, false, true),
            (adopt, true, false),
            (Verb::Release { claim: CLAIM }, true, true),
            (Verb::Extend { ttl: CLAIM }, true, true),
        ];
        for (verb, is_abandoned, expected) in table {
            let outbox = Outbox::default();
            let pending = put(&outbox, verb);
            if is_abandoned {
                drop(pending);
            }
            let question = questions(&outbox).remove(0);
            assert_eq!(question.is_worth_repeating(), expected, "{verb:?} {is_abandoned}");
        }
    }

    #[test]
    fn nothing_is_repeated_twice() {
        let outbox = Outbox::default();
        let _pending = put(&outbox, Verb::Release { claim: CLAIM });
        outbox.put_again(questions(&outbox).remove(0), Cmd::new());
        assert!(!questions(&outbox).remove(0).is_worth_repeating());
    }

    #[test]
    fn what_was_abandoned_in_the_meantime_is_not_put_behind_its_release() {
        let outbox = Outbox::default();
        let pending = put(&outbox, Verb::SetNx { ttl: CLAIM });
        let question = questions(&outbox).remove(0);
        assert!(question.is_worth_repeating());
        drop(pending);
        let _release = put(&outbox, Verb::Release { claim: CLAIM });
        outbox.put_again(question, Cmd::new());
        assert_eq!(questions(&outbox).len(), 1, "the release alone");
    }

    #[test]
    fn a_subscription_is_put_in_once_before_what_comes_later() {
        let outbox = Outbox::default();
        outbox.subscribe("redlock:1");
        let _pending = put(&outbox, Verb::Release { claim: CLAIM });
        outbox.subscribe("redlock:1");
        let taken = outbox.take(&Context::from_waker(Waker::noop()));
        assert!(matches!(taken[..], [Outgoing { asked: Asked::Subscription, .. }, _]));
    }
}
