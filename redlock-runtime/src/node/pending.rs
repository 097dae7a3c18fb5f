//! Answers that are still to come, and who gets them.

use crate::error::NodeError;
use crate::protocol::command::Answer;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot::{self, error::TryRecvError};

/// The answer to a command that was sent, given out once.
#[derive(Debug)]
pub(crate) struct Pending(Source);

/// Where the answer comes from.
#[derive(Debug)]
enum Source {
    /// It was taken, or there is none.
    Gone,
    /// It is here. Boxed: every held lock keeps room for one answer of each node, and most of them come later.
    Here(Box<Answer>),
    /// From a [`Recipient::task`].
    Later(oneshot::Receiver<Answer>),
}

impl Pending {
    pub(crate) fn answered(answer: Answer) -> Self {
        Self(Source::Here(Box::new(answer)))
    }

    /// No answer, as of a command that was not sent yet.
    pub(crate) const fn none() -> Self {
        Self(Source::Gone)
    }

    pub(crate) const fn later(answer: oneshot::Receiver<Answer>) -> Self {
        Self(Source::Later(answer))
    }

    /// The answer, once. Whoever polls is woken when it comes.
    pub(crate) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        if let Source::Later(answer) = &mut self.0 {
            let answer = ready!(Pin::new(answer).poll(cx));
            *self = Self::none();
            // A connection that is gone has answered nothing.
            return Poll::Ready(answer.unwrap_or(Err(NodeError::Disconnected)));
        }
        self.take().map_or(Poll::Pending, Poll::Ready)
    }

    /// The answer, if it is here. Whoever has polled for it before is still woken when it comes.
    pub(crate) fn try_answer(&mut self) -> Option<Answer> {
        let Source::Later(answer) = &mut self.0 else { return self.take() };
        let answer = match answer.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Closed) => Err(NodeError::Disconnected),
        };
        *self = Self::none();
        Some(answer)
    }

    /// The answer that is here.
    fn take(&mut self) -> Option<Answer> {
        match mem::replace(&mut self.0, Source::Gone) {
            Source::Here(answer) => Some(*answer),
            Source::Gone | Source::Later(_) => None,
        }
    }
}

/// Who gets the answer to a command.
pub(crate) struct Recipient(Receive);

enum Receive {
    /// Passes the answer to a [`Pending`].
    Task(oneshot::Sender<Answer>),
    /// Does the same, and drops something then. Boxed: few do.
    Watched(Box<(oneshot::Sender<Answer>, Box<dyn Send>)>),
    Background(Box<dyn FnOnce(Answer) + Send>),
}

impl Recipient {
    /// A task that may wait for the answer, and what it waits with.
    pub(crate) fn task() -> (Self, Pending) {
        let (answer, pending) = oneshot::channel();
        (Self(Receive::Task(answer)), Pending::later(pending))
    }

    /// The same as [`task`](Self::task), and `watch` is dropped when there is an answer, or will be none. As of a function in the
    /// background, that must neither block nor panic.
    pub(crate) fn watched(watch: impl Send + 'static) -> (Self, Pending) {
        let (answer, pending) = oneshot::channel();
        (Self(Receive::Watched(Box::new((answer, Box::new(watch))))), Pending::later(pending))
    }

    /// A function that is called with the answer.
    ///
    /// It is called in the task of the connection, or by whoever sends the command when there is no connection, with
    /// every mutex that the sender has locked. So `receive` must neither block nor panic, send anything to a node, or
    /// look at a lock.
    pub(crate) fn background(receive: impl FnOnce(Answer) + Send + 'static) -> Self {
        Self(Receive::Background(Box::new(receive)))
    }

    /// Passes `answer` on.
    pub(crate) fn answer(self, answer: Answer) {
        match self.0 {
            Receive::Task(task) => {
                // Whoever asked may be gone.
                let _ = task.send(answer);
            }
            Receive::Watched(watched) => {
                let (task, watch) = *watched;
                // Before the task, which may ask again at once.
                drop(watch);
                let _ = task.send(answer);
            }
            Receive::Background(receive) => receive(answer),
        }
    }

    /// Whether nobody wants the answer any more.
    pub(crate) fn is_gone(&self) -> bool {
        match &self.0 {
            Receive::Task(task) => task.is_closed(),
            Receive::Watched(watched) => watched.0.is_closed(),
            Receive::Background(_) => false,
        }
    }
}

impl Future for Pending {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        self.poll_answer(cx)
    }
}
