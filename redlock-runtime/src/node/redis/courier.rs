//! Carries commands to a connection in batches, and the answers back.
//!
//! One task takes what has gathered in the outbox, sends it as one pipeline and hands out the answers: so one system
//! call, one message to the client crate and one wake-up serve many commands.

use super::live_connection::LiveConnection;
use super::outbox::{Asked, Outgoing};
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, RedisError, Value};
use std::collections::VecDeque;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::task::coop::unconstrained;

/// Answers are handed out when the whole batch is answered: small enough that the server works on one batch while the
/// tasks of the one before go on.
const LARGEST_BATCH: usize = 64;

/// Moves bytes between the client crate's queue and the socket; it ends when the connection breaks.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The task of one connection. It ends when the connection breaks.
pub(super) struct Courier {
    live: Arc<LiveConnection>,
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
    pub(super) fn new(live: Arc<LiveConnection>, connection: MultiplexedConnection, driver: Driver) -> Self {
        Self { live, connection, driver, batches: VecDeque::new(), has_gathered: false }
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
                deliver(&self.live, asked, answers);
            }
        }
    }
}

/// The answers to a pipeline, which is sent before this returns.
///
/// A subscription counts as one command with one answer: it is to one channel, and the client crate takes its
/// confirmation for the answer.
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

fn deliver(live: &LiveConnection, asked: Vec<Asked>, answers: Result<Vec<Value>, RedisError>) {
    match answers {
        Ok(answers) => asked.into_iter().zip(answers).for_each(|(asked, answer)| live.answered(asked, answer)),
        // Not an answer of the server, whatever it is: some of the commands may have been executed.
        Err(error) => {
            tracing::debug!(%error, "a batch was not answered");
            asked.into_iter().for_each(Asked::disconnected);
        }
    }
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
        let gathered = self.live.outbox.take(cx);
        self.send(gathered);
        let driver = self.driver.as_mut().poll(cx);
        self.deliver();
        driver
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        self.live.outbox.close();
        self.batches.drain(..).flat_map(|batch| batch.asked).for_each(Asked::disconnected);
    }
}
