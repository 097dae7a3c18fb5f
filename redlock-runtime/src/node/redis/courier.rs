//! Carries commands to a connection in batches, and the answers back.
//!
//! A command is put into the outbox by whoever has one, also from `Drop` and from outside of the runtime; that fixes its
//! place in the order. One task takes what has gathered, sends it as one pipeline and hands out the answers: so one
//! system call, one message to the client crate and one wake-up serve many commands.

use super::connect::Driver;
use super::link::{Link, is_of_another_type, refused, reply};
use crate::error::NodeError;
use crate::node::{Answer, Command, Pending, Reply};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisError, Value};
use std::collections::VecDeque;
use std::future::{Future, ready};
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::oneshot;
use tokio::task::coop::unconstrained;

/// Answers are handed out when the whole batch is answered: small enough that the server works on one batch while the
/// tasks of the one before go on.
const LARGEST_BATCH: usize = 64;

/// Commands that wait to be sent on one connection.
#[derive(Default)]
pub(super) struct Outbox(Mutex<Gathered>);

#[derive(Default)]
struct Gathered {
    commands: Vec<Outgoing>,
    courier: Option<Waker>,
    is_closed: bool,
}

struct Outgoing {
    wire: Cmd,
    asked: Asked,
}

/// A command, and where its answer goes.
struct Asked {
    command: Command,
    answer: oneshot::Sender<Answer>,
    /// By the source of its script, because the server had lost that.
    is_repeated: bool,
}

impl Outbox {
    /// Puts `command` into the order of the connection.
    pub(super) fn put(&self, command: Command, wire: Cmd) -> Pending {
        let (answer, pending) = oneshot::channel();
        self.put_asked(Asked { command, answer, is_repeated: false }, wire);
        Pending::Redis(pending)
    }

    fn put_asked(&self, asked: Asked, wire: Cmd) {
        let mut gathered = self.gathered();
        if gathered.is_closed {
            drop(gathered);
            return asked.answer(Err(NodeError::Disconnected));
        }
        gathered.commands.push(Outgoing { wire, asked });
        let courier = gathered.courier.take();
        drop(gathered);
        if let Some(courier) = courier {
            courier.wake();
        }
    }

    /// Takes everything out, and sees to it that the next command wakes the courier.
    fn take(&self, cx: &Context<'_>) -> Vec<Outgoing> {
        let mut gathered = self.gathered();
        gathered.courier = Some(cx.waker().clone());
        mem::take(&mut gathered.commands)
    }

    /// Ends it: commands that were not sent are answered, and there will be no others.
    fn close(&self) {
        let mut gathered = self.gathered();
        gathered.is_closed = true;
        let unsent = mem::take(&mut gathered.commands);
        drop(gathered);
        for outgoing in unsent {
            outgoing.asked.answer(Err(NodeError::Disconnected));
        }
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        // No code that can panic runs under this mutex.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked {
    fn answer(self, answer: Answer) {
        // Whoever asked may be gone.
        let _ = self.answer.send(answer);
    }
}

/// The task of one connection. It ends when the connection breaks.
pub(super) struct Courier {
    link: Arc<Link>,
    connection: MultiplexedConnection,
    driver: Driver,
    batches: VecDeque<Batch>,
    has_gathered: bool,
}

/// Commands that were sent together.
struct Batch {
    asked: Vec<Asked>,
    answers: Answers,
}

type Answers = Pin<Box<dyn Future<Output = Result<Vec<Value>, RedisError>> + Send>>;

impl Courier {
    pub(super) fn new(link: Arc<Link>, connection: MultiplexedConnection, driver: Driver) -> Self {
        Self { link, connection, driver, batches: VecDeque::new(), has_gathered: false }
    }

    fn send(&mut self, gathered: Vec<Outgoing>) {
        let mut gathered = gathered.into_iter();
        while gathered.len() > 0 {
            let size = gathered.len().min(LARGEST_BATCH);
            let (mut pipeline, mut asked) = (Pipeline::with_capacity(size), Vec::with_capacity(size));
            for outgoing in gathered.by_ref().take(size) {
                pipeline.add_command(outgoing.wire);
                asked.push(outgoing.asked);
            }
            self.batches.push_back(Batch { asked, answers: answers(self.connection.clone(), pipeline) });
        }
    }

    /// Hands out what has been answered.
    fn deliver(&mut self) {
        while let Some(batch) = self.batches.front_mut()
            && let Poll::Ready(answers) = batch.answers.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            if let Some(Batch { asked, .. }) = self.batches.pop_front() {
                deliver(&self.link, asked, answers);
            }
        }
    }
}

/// The answers to a pipeline, which is sent before this returns.
fn answers(mut connection: MultiplexedConnection, pipeline: Pipeline) -> Answers {
    // Unconstrained: whoever has used up tokio's cooperative budget would be told to wait, and would not send.
    let mut answers: Answers =
        Box::pin(unconstrained(async move { connection.send_packed_commands(&pipeline, 0, pipeline.len()).await }));
    // The first poll sends; the connection's queue has room for everything. Only the driver moves it on after that, so
    // that it needs no waker.
    match answers.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => answers,
        Poll::Ready(answers) => Box::pin(ready(answers)),
    }
}

fn deliver(link: &Link, asked: Vec<Asked>, answers: Result<Vec<Value>, RedisError>) {
    match answers {
        Ok(answers) => {
            for (asked, answer) in asked.into_iter().zip(answers) {
                deliver_one(link, asked, answer);
            }
        }
        // Not an answer of the server, whatever it is: some of the commands may have been executed.
        Err(error) => {
            tracing::debug!(%error, "a batch was not answered");
            for asked in asked {
                asked.answer(Err(NodeError::Disconnected));
            }
        }
    }
}

fn deliver_one(link: &Link, asked: Asked, answer: Value) {
    let answer = match answer.extract_error() {
        Ok(value) => reply(asked.command.verb, &value),
        Err(error) => match link.instead(&asked.command, &error).filter(|_| !asked.is_repeated) {
            Some(wire) => return link.outbox.put_asked(Asked { is_repeated: true, ..asked }, wire),
            // Whatever stands there instead, the token does not own the lock any more.
            None if is_of_another_type(&error) => Ok(Reply::NotOwner),
            None => Err(refused(&error)),
        },
    };
    asked.answer(answer);
}

impl Future for Courier {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Going to the back of the scheduler's queue once lets the tasks that are ready send theirs first.
        self.has_gathered = !self.has_gathered;
        if self.has_gathered {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let gathered = self.link.outbox.take(cx);
        self.send(gathered);
        let driver = self.driver.as_mut().poll(cx);
        self.deliver();
        driver
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        self.link.outbox.close();
        for asked in self.batches.drain(..).flat_map(|batch| batch.asked) {
            asked.answer(Err(NodeError::Disconnected));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Subject, Verb};
    use crate::token::{ManagerId, OwnerToken};

    fn put(outbox: &Outbox) -> Pending {
        let subject = Subject { key: "order:7".into(), token: OwnerToken::new(ManagerId::random()) };
        outbox.put(Command { verb: Verb::Release, subject: Arc::new(subject) }, Cmd::new())
    }

    #[test]
    fn a_closed_outbox_answers_what_was_not_sent_and_what_comes_later() {
        let outbox = Outbox::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut unsent = put(&outbox);
        assert!(unsent.poll_answer(&mut cx).is_pending());
        outbox.close();
        for mut pending in [unsent, put(&outbox)] {
            assert_eq!(pending.poll_answer(&mut cx), Poll::Ready(Err(NodeError::Disconnected)));
        }
    }
}
