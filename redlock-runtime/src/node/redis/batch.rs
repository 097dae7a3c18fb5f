//! Commands that are sent together as one pipeline, and whose replies are dispatched together.

use super::answer::refused;
use super::confirmation;
use super::extensions;
use super::live_connection::LiveConnection;
use super::question::{Confirmation, Outgoing, Question, ReplyKind};
use crate::error::NodeError;
use crate::node::environment::Replicas;
use crate::observe::events;
use crate::time::clock::Instant;
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, RedisError, Value};
use std::future::{Future, ready};
use std::iter::Peekable;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::task::coop::unconstrained;

/// Maximum number of commands in a batch, of which one may extend many locks. Replies are dispatched when the whole batch is answered. Too
/// small: each system call serves fewer commands. Too large: the tasks of one batch wait while the server works on commands that could be
/// in the next one.
const LARGEST: usize = 64;

/// Commands that were sent together.
pub(super) struct Batch {
    sent_for: Vec<SentFor>,
    /// The replicas that must confirm the batch, if it has a `WAIT`.
    replicas: Option<Replicas>,
    answers: Answers,
    sent: Instant,
}

/// Recipient of a reply.
enum SentFor {
    /// A request, and its number of commands.
    One(ReplyKind, usize),
    /// All these extensions are one command.
    Extensions(Vec<Question>),
}

type Answers = Pin<Box<dyn Future<Output = Result<Vec<Value>, RedisError>> + Send>>;

impl Batch {
    /// Sends as many of `gathered` as fit into one batch.
    pub(super) fn send(
        gathered: &mut Peekable<impl ExactSizeIterator<Item = Outgoing>>,
        connection: &MultiplexedConnection,
        live: &LiveConnection,
    ) -> Self {
        let size = gathered.len().min(LARGEST);
        let (mut pipeline, mut sent_for) = (Pipeline::with_capacity(size), Vec::with_capacity(size));
        let mut makes_leases = false;
        while sent_for.len() < size || matches!(sent_for.last(), Some(SentFor::One(ReplyKind::Asking, _))) {
            // The command after an `ASKING` must follow at once.
            let Some(outgoing) = gathered.next() else { break };
            makes_leases |= confirmation::concerns(&outgoing);
            match outgoing {
                Outgoing::Worded(wire, asked) => {
                    sent_for.push(SentFor::One(asked, 1 + wire.rest.len()));
                    pipeline.add_command(wire.first);
                    for command in wire.rest {
                        pipeline.add_command(command);
                    }
                }
                Outgoing::Extension(question) => {
                    let questions: Vec<_> = extensions::beside(question, gathered).collect();
                    pipeline.add_command(live.extension(&questions));
                    sent_for.push(SentFor::extensions(questions));
                }
            }
        }
        let replicas = live.replicas().filter(|_| makes_leases);
        if let Some(replicas) = replicas {
            pipeline.add_command(confirmation::wait(replicas));
        }
        Self { sent_for, replicas, answers: answers(connection.clone(), pipeline), sent: live.now() }
    }

    /// Returns `true` if the batch waits for replicas.
    pub(super) const fn waits_for_replicas(&self) -> bool {
        self.replicas.is_some()
    }

    /// Polls for the replies to all commands. No task is woken for them: the driver of the connection delivers them.
    pub(super) fn poll_answers(&mut self) -> Poll<Result<Vec<Value>, RedisError>> {
        self.answers.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Dispatches the replies.
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
                for mut sent_for in self.sent_for {
                    sent_for.confirmed(confirmation.as_ref());
                    match (sent_for, answers.next()) {
                        (sent_for, None) => live.unanswered(sent_for.into_asked()),
                        (SentFor::Extensions(questions), Some(answer)) => live.extended(questions, answer),
                        (SentFor::One(asked, 1), Some(answer)) => live.answered(asked, answer),
                        (SentFor::One(asked, commands), Some(first)) => {
                            let rest: Vec<_> = answers.by_ref().take(commands - 1).collect();
                            live.answered_in_parts(asked, first, &rest);
                        }
                    }
                }
            }
            // The error is not a reply of the server: some of the commands may have been executed.
            Err(error) => {
                events::unanswered(&error);
                self.disconnected(live);
            }
        }
    }

    /// Fails all requests because no replies will come.
    pub(super) fn disconnected(self, live: &LiveConnection) {
        live.unanswered(self.sent_for.into_iter().flat_map(SentFor::into_asked));
    }
}

impl SentFor {
    /// Wraps the extensions of one command. A single extension has been sent like any other command.
    fn extensions(questions: Vec<Question>) -> Self {
        match <[Question; 1]>::try_from(questions) {
            Ok([alone]) => Self::One(ReplyKind::Question(alone), 1),
            Err(several) => Self::Extensions(several),
        }
    }

    /// Records the confirmation of the replicas, or its failure.
    fn confirmed(&mut self, confirmation: Option<&Confirmation>) {
        match self {
            Self::One(ReplyKind::Question(question), _) => question.confirmation = confirmation.cloned(),
            Self::One(..) => {}
            Self::Extensions(questions) => {
                for question in questions {
                    question.confirmation = confirmation.cloned();
                }
            }
        }
    }

    fn into_asked(self) -> impl Iterator<Item = ReplyKind> {
        let (one, several) = match self {
            Self::One(asked, _) => (Some(asked), Vec::new()),
            Self::Extensions(questions) => (None, questions),
        };
        one.into_iter().chain(several.into_iter().map(ReplyKind::Question))
    }
}

/// Sends a pipeline before it returns, and returns its replies.
///
/// A subscription is one command with one reply: it is for one channel, and the client crate treats its confirmation as the reply.
fn answers(mut connection: MultiplexedConnection, pipeline: Pipeline) -> Answers {
    // Unconstrained: a task without remaining cooperative budget would be told to wait by tokio, and would not send.
    let mut answers: Answers =
        Box::pin(unconstrained(async move { connection.send_packed_commands(&pipeline, 0, pipeline.len()).await }));
    // The first poll sends; the connection's queue has room for everything. After that, only the driver makes progress, so no waker is
    // needed.
    match answers.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => answers,
        Poll::Ready(answers) => Box::pin(ready(answers)),
    }
}
