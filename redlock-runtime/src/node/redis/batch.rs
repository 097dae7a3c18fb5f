//! Commands that are sent together as one pipeline, and whose answers are handed out together.

use super::answer::refused;
use super::confirmation;
use super::live_connection::LiveConnection;
use super::question::{Asked, Outgoing};
use crate::error::NodeError;
use crate::node::environment::Replicas;
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
    /// Those whose word comes last, if the batch has waited for any.
    replicas: Option<Replicas>,
    answers: Answers,
    sent: Instant,
}

type Answers = Pin<Box<dyn Future<Output = Result<Vec<Value>, RedisError>> + Send>>;

impl Batch {
    /// Sends as many of `gathered` as go into one batch.
    pub(super) fn send(
        gathered: &mut impl ExactSizeIterator<Item = Outgoing>,
        connection: &MultiplexedConnection,
        replicas: Option<Replicas>,
        now: Instant,
    ) -> Self {
        let size = gathered.len().min(LARGEST);
        let (mut pipeline, mut asked) = (Pipeline::with_capacity(size), Vec::with_capacity(size));
        let mut makes_leases = false;
        while asked.len() < size || matches!(asked.last(), Some((Asked::Asking, _))) {
            // What follows an `ASKING` follows at once.
            let Some(outgoing) = gathered.next() else { break };
            makes_leases |= confirmation::concerns(&outgoing);
            asked.push((outgoing.asked, 1 + outgoing.wire.rest.len()));
            pipeline.add_command(outgoing.wire.first);
            for command in outgoing.wire.rest {
                pipeline.add_command(command);
            }
        }
        let replicas = replicas.filter(|_| makes_leases);
        if let Some(replicas) = replicas {
            pipeline.add_command(confirmation::wait(replicas));
        }
        Self { asked, replicas, answers: answers(connection.clone(), pipeline), sent: now }
    }

    /// Whether the replicas are being waited for.
    pub(super) const fn waits_for_replicas(&self) -> bool {
        self.replicas.is_some()
    }

    /// The answers to all commands. Nobody is woken for them: the driver of the connection brings them.
    pub(super) fn poll_answers(&mut self) -> Poll<Result<Vec<Value>, RedisError>> {
        self.answers.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Hands out the answers.
    pub(super) fn deliver(self, answers: Result<Vec<Value>, RedisError>, live: &LiveConnection) {
        match answers {
            Ok(mut answers) => {
                live.batch_answered(self.sent);
                let confirmation = self.replicas.map(|replicas| {
                    let said = answers.pop().ok_or(NodeError::Disconnected);
                    let said = said.and_then(|said| said.extract_error().map_err(|error| refused(&error)));
                    confirmation::read(replicas, said)
                });
                let mut answers = answers.into_iter();
                for (mut asked, commands) in self.asked {
                    asked.confirmed(confirmation.as_ref());
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
