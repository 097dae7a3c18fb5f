//! The commands that wait to be sent on one connection, in their order.
//!
//! Any caller can queue a command, even from `Drop` and from outside of the runtime. This fixes the position of the command in the order.

use super::question::{Outgoing, Question, ReplyKind, Wire};
use crate::error::NodeError;
use crate::time::clock::Instant;
use redis::{Cmd, Value};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use tokio::sync::{Notify, oneshot};

/// Commands that callers have queued on a connection and its I/O task takes out.
#[derive(Default)]
pub(super) struct Outbox {
    gathered: Mutex<Gathered>,
    /// Notifies the task that watches the connection.
    attention: Notify,
    /// Wakes the task that waits for the next command.
    used: Notify,
    /// A task waits for the next command. Only read and changed under the mutex.
    is_use_awaited: AtomicBool,
}

#[derive(Default)]
struct Gathered {
    commands: Vec<Outgoing>,
    /// Wakes the I/O task; `None` if it was woken and has not taken the commands since.
    io_task: Option<Waker>,
    /// Number of commands queued so far.
    puts: u64,
    /// Number of these commands that were combined extensions: renewals.
    extensions: u64,
    /// `true` if the next command notifies the task that watches the connection.
    is_watched: bool,
    /// `true` if the subscription was queued.
    is_subscribed: bool,
    /// `true` after the end of the connection.
    is_closed: bool,
}

impl Outbox {
    /// Queues `question` on the connection. If the connection has ended, the question fails, and `false` is returned.
    pub(super) fn put(&self, question: Question, wire: impl Into<Wire>) -> bool {
        self.put_if(question, wire.into(), |_| true)
    }

    /// Queues `question` on the connection if it `is_wanted`, after an `ASKING` if it needs one. No other command is queued between the
    /// check and the question, or between the two commands. A question that is not queued fails as if the connection had broken, and
    /// `false` is returned.
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
            gathered.commands.push(Outgoing::Worded(asking.into(), ReplyKind::Asking));
        }
        self.put_into(gathered, Outgoing::Worded(wire, ReplyKind::Question(question)));
        true
    }

    /// Queues an extension on the connection, to be combined with adjacent ones. Returns `false` like [`put`](Self::put).
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

    /// Queues the subscription to `channel` on the connection; only the first call has an effect.
    pub(super) fn subscribe(&self, channel: &str) {
        let mut gathered = self.gathered();
        if !mem::replace(&mut gathered.is_subscribed, true) && !gathered.is_closed {
            let mut wire = Cmd::new();
            wire.arg("SUBSCRIBE").arg(channel);
            self.put_into(gathered, Outgoing::Worded(wire.into(), ReplyKind::Subscription));
        }
    }

    /// Queues `outgoing`, and wakes the I/O task outside of the mutex.
    fn put_into(&self, mut gathered: MutexGuard<'_, Gathered>, outgoing: Outgoing) {
        gathered.commands.push(outgoing);
        gathered.puts = gathered.puts.wrapping_add(1);
        let (io_task, is_watched) = (gathered.io_task.take(), mem::take(&mut gathered.is_watched));
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
        if let Some(io_task) = io_task {
            io_task.wake();
        }
    }

    /// Takes all commands, and registers the I/O task to be woken by the next one. The buffer of `empty` is used for the following
    /// commands.
    pub(super) fn take(&self, cx: &Context<'_>, empty: Vec<Outgoing>) -> Vec<Outgoing> {
        let mut gathered = self.gathered();
        gathered.io_task = Some(cx.waker().clone());
        mem::replace(&mut gathered.commands, empty)
    }

    /// Returns the number of commands so far, the number without renewals, and `true` if some commands are still queued.
    pub(super) fn seen(&self) -> (u64, u64, bool) {
        let gathered = self.gathered();
        (gathered.puts, gathered.puts.wrapping_sub(gathered.extensions), !gathered.commands.is_empty())
    }

    /// Notifies the task that waits for [`attention`](Self::attention) at the next command after the first `puts`.
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

    /// Completes when the connection needs attention.
    pub(super) fn attention(&self) -> impl Future<Output = ()> {
        self.attention.notified()
    }

    pub(super) fn call_attention(&self) {
        self.attention.notify_one();
    }

    /// Queues a query about the server.
    pub(super) fn probe(&self, wire: impl Into<Wire>) -> oneshot::Receiver<Result<Value, NodeError>> {
        let (answer, pending) = oneshot::channel();
        let gathered = self.gathered();
        // After the end of the connection, the sender of the reply is dropped here, and the receiver fails.
        if !gathered.is_closed {
            self.put_into(gathered, Outgoing::Worded(wire.into(), ReplyKind::Probe(answer)));
        }
        pending
    }

    /// Queries the time of the server; `now` is the current time.
    pub(super) fn query_time(&self, now: Instant) {
        let gathered = self.gathered();
        if !gathered.is_closed {
            let mut wire = Cmd::new();
            wire.arg("TIME");
            self.put_into(gathered, Outgoing::Worded(wire.into(), ReplyKind::Time(now)));
        }
    }

    /// Closes the outbox: no further commands are accepted. Returns the commands that were not sent, which the caller must answer.
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
    fn closed_outbox_fails_unsent_and_later_commands() {
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
    fn subscription_is_queued_once_before_later_commands() {
        let outbox = Outbox::default();
        outbox.subscribe("redlock:1");
        let _pending = put(&outbox, Verb::Release { claim: CLAIM });
        outbox.subscribe("redlock:1");
        let taken = outbox.take(&Context::from_waker(Waker::noop()), Vec::new());
        assert!(matches!(taken[..], [Outgoing::Worded(_, ReplyKind::Subscription), _]));
    }
}
