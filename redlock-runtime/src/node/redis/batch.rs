//! Commands that are sent together as one pipeline, and whose answers are handed out together.

use super::live_connection::LiveConnection;
use super::question::{Asked, Outgoing};
use crate::observe::events;
use crate::time::clock::Instant;
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, RedisError, Value};
use std::future::{Future, ready};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::task::coop::unconstrained;

/// The most questions in a batch. Answers are handed out when the whole batch is answered: with more, the tasks of one
/// batch would not go on while the server works on the next; with fewer, each system call would serve fewer commands.
const LARGEST: usize = 64;

/// Commands that were sent together.
pub(super) struct Batch {
    /// With the number of commands that each has sent.
    asked: Vec<(Asked, usize)>,
    answers: Answers,
    sent: Instant,
}

type Answers = Pin<Box<dyn Future<Output = Result<Vec<Value>, RedisError>> + Send>>;

impl Batch {
    /// Sends as many of `gathered` as go into one batch.
    pub(super) fn send(
        gathered: &mut impl ExactSizeIterator<Item = Outgoing>,
        connection: &MultiplexedConnection,
        now: Instant,
    ) -> Self {
        let size = gathered.len().min(LARGEST);
        let (mut pipeline, mut asked) = (Pipeline::with_capacity(size), Vec::with_capacity(size));
        for outgoing in gathered.take(size) {
            asked.push((outgoing.asked, 1 + outgoing.wire.rest.len()));
            pipeline.add_command(outgoing.wire.first);
            for command in outgoing.wire.rest {
                pipeline.add_command(command);
            }
        }
        Self { asked, answers: answers(connection.clone(), pipeline), sent: now }
    }

    /// The answers to all commands. Nobody is woken for them: the driver of the connection brings them.
    pub(super) fn poll_answers(&mut self) -> Poll<Result<Vec<Value>, RedisError>> {
        self.answers.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Hands out the answers.
    pub(super) fn deliver(self, answers: Result<Vec<Value>, RedisError>, live: &LiveConnection) {
        match answers {
            Ok(answers) => {
                live.batch_answered(self.sent);
                let mut answers = answers.into_iter();
                for (asked, commands) in self.asked {
                    match (commands, answers.next()) {
                        (_, None) => live.unanswered([asked].into_iter()),
                        (1, Some(answer)) => live.answered(asked, answer),
                        (_, Some(first)) => {
                            let rest: Vec<_> = answers.by_ref().take(commands - 1).collect();
                            live.answered_in_parts(asked, first, &rest);
                        }
                    }
                }
            }
            // Not an answer of the server, whatever it is: some of the commands may have been executed.
            Err(error) => {
                events::unanswered(&error);
                self.disconnected(live);
            }
        }
    }

    /// There will be no answers.
    pub(super) fn disconnected(self, live: &LiveConnection) {
        live.unanswered(self.asked.into_iter().map(|(asked, _)| asked));
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
