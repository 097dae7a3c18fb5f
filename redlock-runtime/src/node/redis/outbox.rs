//! What waits to be sent on one connection, in its order.
//!
//! A command is put into the outbox by whoever has one, also from `Drop` and from outside of the runtime; that fixes
//! its place in the order.

use super::question::{Asked, Outgoing, Question, Wire};
use crate::error::NodeError;
use crate::time::clock::Instant;
use redis::{Cmd, Value};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use tokio::sync::{Notify, oneshot};

/// What the users of a connection put in and its courier takes out.
#[derive(Default)]
pub(super) struct Outbox {
    gathered: Mutex<Gathered>,
    /// Tells who watches the connection that there is something to look at.
    attention: Notify,
    /// Wakes the task that waits for the next command.
    used: Notify,
    /// A task waits for the next command. Only read and changed under the mutex.
    is_use_awaited: AtomicBool,
}

#[derive(Default)]
struct Gathered {
    commands: Vec<Outgoing>,
    /// Wakes the courier; none when it was woken and has not been here since.
    courier: Option<Waker>,
    /// How many commands were put in so far.
    puts: u64,
    /// How many of them were extensions that go out together: renewals.
    extensions: u64,
    /// Whether the next command calls whoever watches the connection.
    is_watched: bool,
    /// Whether the subscription was put in.
    is_subscribed: bool,
    /// Whether the connection has ended.
    is_closed: bool,
}

impl Outbox {
    /// Puts `question` into the order of the connection. `false` when that has ended, as which it is answered then.
    pub(super) fn put(&self, question: Question, wire: impl Into<Wire>) -> bool {
        self.put_if(question, wire.into(), |_| true)
    }

    /// Puts `question` into the order of the connection if it `is_wanted`, behind an `ASKING` if it is to stand behind one. Nothing
    /// gets into the order between the look at that and the question, or between the two. A question that is not put in is
    /// answered as if the connection had broken, and `false` is returned.
    pub(super) fn put_if(&self, question: Question, wire: Wire, is_wanted: impl FnOnce(&Question) -> bool) -> bool {
        let mut gathered = self.gathered();
        if gathered.is_closed || !is_wanted(&question) {
            // The recipient must not be called under the mutex.
            drop(gathered);
            question.answer(Err(NodeError::Disconnected));
            return false;
        }
        if question.asked_by.is_some() {
            let mut asking = Cmd::new();
            asking.arg("ASKING");
            gathered.commands.push(Outgoing::Worded(asking.into(), Asked::Asking));
        }
        self.put_into(gathered, Outgoing::Worded(wire, Asked::Question(question)));
        true
    }

    /// Puts an extension into the order of the connection, which goes out with those beside it. `false` as for [`put`](Self::put).
    pub(super) fn put_extension(&self, question: Question) -> bool {
        let mut gathered = self.gathered();
        let is_closed = gathered.is_closed;
        if is_closed {
            // The recipient must not be called under the mutex.
            drop(gathered);
            question.answer(Err(NodeError::Disconnected));
        } else {
            gathered.extensions = gathered.extensions.wrapping_add(1);
            self.put_into(gathered, Outgoing::Extension(question));
        }
        !is_closed
    }

    /// Puts the subscription to `channel` into the order of the connection; only the first time.
    pub(super) fn subscribe(&self, channel: &str) {
        let mut gathered = self.gathered();
        if !mem::replace(&mut gathered.is_subscribed, true) && !gathered.is_closed {
            let mut wire = Cmd::new();
            wire.arg("SUBSCRIBE").arg(channel);
            self.put_into(gathered, Outgoing::Worded(wire.into(), Asked::Subscription));
        }
    }

    /// Puts `outgoing` in, and wakes the courier outside of the mutex.
    fn put_into(&self, mut gathered: MutexGuard<'_, Gathered>, outgoing: Outgoing) {
        gathered.commands.push(outgoing);
        gathered.puts = gathered.puts.wrapping_add(1);
        let (courier, is_watched) = (gathered.courier.take(), mem::take(&mut gathered.is_watched));
        let is_use_awaited = self.is_use_awaited.load(Ordering::Relaxed);
        if is_use_awaited {
            self.is_use_awaited.store(false, Ordering::Relaxed);
        }
        drop(gathered);
        if is_use_awaited {
            self.used.notify_one();
        }
        if is_watched {
            self.call_attention();
        }
        if let Some(courier) = courier {
            courier.wake();
        }
    }

    /// Takes everything out, and sees to it that the next command wakes the courier. What follows has the room of `empty`.
    pub(super) fn take(&self, cx: &Context<'_>, empty: Vec<Outgoing>) -> Vec<Outgoing> {
        let mut gathered = self.gathered();
        gathered.courier = Some(cx.waker().clone());
        mem::replace(&mut gathered.commands, empty)
    }

    /// How many commands were put in so far, how many of them were no renewals, and whether some are here that were not taken
    /// out.
    pub(super) fn seen(&self) -> (u64, u64, bool) {
        let gathered = self.gathered();
        (gathered.puts, gathered.puts.wrapping_sub(gathered.extensions), !gathered.commands.is_empty())
    }

    /// Calls whoever waits for [`attention`](Self::attention) at the next command after the first `puts`.
    pub(super) fn watch(&self, puts: u64) {
        let mut gathered = self.gathered();
        gathered.is_watched = gathered.puts == puts;
        if !gathered.is_watched {
            self.call_attention();
        }
    }

    /// Returns at the next command after the first `puts`.
    pub(super) async fn used_after(&self, puts: u64) {
        // The statement ends here, so that the mutex is free before the task waits.
        let is_used = self.await_use(puts);
        if !is_used {
            self.used.notified().await;
        }
    }

    /// Returns `true` if there was a command after the first `puts`. Otherwise the next one wakes the task that waits.
    fn await_use(&self, puts: u64) -> bool {
        let gathered = self.gathered();
        let is_used = gathered.puts != puts;
        self.is_use_awaited.store(!is_used, Ordering::Relaxed);
        is_used
    }

    /// Ready when there is something to look at.
    pub(super) fn attention(&self) -> impl Future<Output = ()> {
        self.attention.notified()
    }

    pub(super) fn call_attention(&self) {
        self.attention.notify_one();
    }

    /// Puts a question about the server into the order of the connection.
    pub(super) fn probe(&self, wire: impl Into<Wire>) -> oneshot::Receiver<Result<Value, NodeError>> {
        let (answer, pending) = oneshot::channel();
        let gathered = self.gathered();
        // After the end of the connection the sender of the answer is dropped here, which the receiver is told.
        if !gathered.is_closed {
            self.put_into(gathered, Outgoing::Worded(wire.into(), Asked::Probe(answer)));
        }
        pending
    }

    /// Asks the server for its time, `now`.
    pub(super) fn ask_time(&self, now: Instant) {
        let gathered = self.gathered();
        if !gathered.is_closed {
            let mut wire = Cmd::new();
            wire.arg("TIME");
            self.put_into(gathered, Outgoing::Worded(wire.into(), Asked::Time(now)));
        }
    }

    /// Ends it: there will be no other commands. Those that were not sent are to be answered.
    #[must_use = "whoever has asked waits for an answer"]
    pub(super) fn close(&self) -> Vec<Outgoing> {
        let mut gathered = self.gathered();
        gathered.is_closed = true;
        mem::take(&mut gathered.commands)
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        // No code that can panic runs under this mutex.
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::OwnerToken;
    use crate::lock::owner_token::ManagerId;
    use crate::node::pending::{Pending, Recipient};
    use crate::protocol::command::{Command, Subject, Verb};
    use crate::protocol::timing::CLAIM;
    use crate::time::token_clock::TokenTime;
    use std::sync::Arc;
    use std::task::Poll;

    fn put(outbox: &Outbox, verb: Verb) -> Pending {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1, 0));
        let subject = Arc::new(Subject::new("order:7".into(), token));
        let (recipient, pending) = Recipient::task();
        outbox.put(Question::new(Command { verb, fence: None, subject }, None, recipient), Cmd::new());
        pending
    }

    #[test]
    fn a_closed_outbox_answers_what_was_not_sent_and_what_comes_later() {
        let outbox = Outbox::default();
        let release = Verb::Release { claim: CLAIM };
        let mut cx = Context::from_waker(Waker::noop());
        let mut unsent = put(&outbox, release);
        assert!(unsent.poll_answer(&mut cx).is_pending());
        for outgoing in outbox.close() {
            assert!(outgoing.asked().disconnected());
        }
        for mut pending in [unsent, put(&outbox, release)] {
            assert_eq!(pending.poll_answer(&mut cx), Poll::Ready(Err(NodeError::Disconnected)));
        }
    }

    #[test]
    fn a_subscription_is_put_in_once_before_what_comes_later() {
        let outbox = Outbox::default();
        outbox.subscribe("redlock:1");
        let _pending = put(&outbox, Verb::Release { claim: CLAIM });
        outbox.subscribe("redlock:1");
        let taken = outbox.take(&Context::from_waker(Waker::noop()), Vec::new());
        assert!(matches!(taken[..], [Outgoing::Worded(_, Asked::Subscription), _]));
    }
}
