//! Commands that are sent together as one pipeline, and whose answers are handed out together.

use super::answer::refused;
use super::confirmation;
use super::extensions;
use super::live_connection::LiveConnection;
use super::question::{Asked, Confirmation, Outgoing, Question};
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

/// The most commands in a batch, of which one may extend many locks. Answers are handed out when the whole batch is answered:
/// with more, the tasks of one batch would not go on while the server works on the next; with fewer, each system call would
/// serve fewer commands.
const LARGEST: usize = 64;

/// Commands that were sent together.
pub(super) struct Batch {
    sent_for: Vec<SentFor>,
    /// Those whose word comes last, if the batch has waited for any.
    replicas: Option<Replicas>,
    answers: Answers,
    sent: Instant,
}

/// Whom an answer is for.
enum SentFor {
    /// It is the answer to so many commands of the server.
    One(Asked, usize),
    /// One command extends all of these.
    Extensions(Vec<Question>),
}

type Answers = Pin<Box<dyn Future<Output = Result<Vec<Value>, RedisError>> + Send>>;

impl Batch {
    /// Sends as many of `gathered` as go into one batch.
    pub(super) fn send(
        gathered: &mut Peekable<impl ExactSizeIterator<Item = Outgoing>>,
        connection: &MultiplexedConnection,
        live: &LiveConnection,
    ) -> Self {
        let size = gathered.len().min(LARGEST);
        let (mut pipeline, mut sent_for) = (Pipeline::with_capacity(size), Vec::with_capacity(size));
        let mut makes_leases = false;
        while sent_for.len() < size || matches!(sent_for.last(), Some(SentFor::One(Asked::Asking, _))) {
            // What follows an `ASKING` follows at once.
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
            // Not an answer of the server, whatever it is: some of the commands may have been executed.
            Err(error) => {
                events::unanswered(&error);
                self.disconnected(live);
            }
        }
    }

    /// There will be no answers.
    pub(super) fn disconnected(self, live: &LiveConnection) {
        live.unanswered(self.sent_for.into_iter().flat_map(SentFor::into_asked));
    }
}

impl SentFor {
    /// One that is alone has gone out as any other command.
    fn extensions(questions: Vec<Question>) -> Self {
        match <[Question; 1]>::try_from(questions) {
            Ok([alone]) => Self::One(Asked::Question(alone), 1),
            Err(several) => Self::Extensions(several),
        }
    }

    /// The replicas have what was written, or not.
    fn confirmed(&mut self, confirmation: Option<&Confirmation>) {
        match self {
            Self::One(Asked::Question(question), _) => question.confirmation = confirmation.cloned(),
            Self::One(..) => {}
            Self::Extensions(questions) => {
                for question in questions {
                    question.confirmation = confirmation.cloned();
                }
            }
        }
    }

    fn into_asked(self) -> impl Iterator<Item = Asked> {
        let (one, several) = match self {
            Self::One(asked, _) => (Some(asked), Vec::new()),
            Self::Extensions(questions) => (None, questions),
        };
        one.into_iter().chain(several.into_iter().map(Asked::Question))
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
