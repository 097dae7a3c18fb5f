//! Pending answers to commands, and their recipients.

use crate::error::NodeError;
use crate::protocol::command::Answer;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot::{self, error::TryRecvError};

/// The answer to a command that was sent. It can be taken once.
#[derive(Debug)]
pub(crate) struct Pending(Source);

/// Source of the answer.
#[derive(Debug)]
enum Source {
    /// The answer was taken, or there is none.
    Gone,
    /// An answer that has arrived. Boxed: every held lock reserves space for one answer of each node, and most of them come later.
    Here(Box<Answer>),
    /// The channel of a [`Recipient::task`].
    Later(oneshot::Receiver<Answer>),
}

impl Pending {
    pub(crate) fn answered(answer: Answer) -> Self {
        Self(Source::Here(Box::new(answer)))
    }

    /// Returns a pending answer that never comes, as for a command that was not sent yet.
    pub(crate) const fn none() -> Self {
        Self(Source::Gone)
    }

    pub(crate) const fn later(answer: oneshot::Receiver<Answer>) -> Self {
        Self(Source::Later(answer))
    }

    /// Polls for the answer, which is returned once. The last poller is woken when it arrives.
    pub(crate) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        if let Source::Later(answer) = &mut self.0 {
            let answer = ready!(Pin::new(answer).poll(cx));
            *self = Self::none();
            // A connection that is gone has not answered.
            return Poll::Ready(answer.unwrap_or(Err(NodeError::Disconnected)));
        }
        self.take().map_or(Poll::Pending, Poll::Ready)
    }

    /// Returns the answer, if it has arrived. A task that has polled for it before is still woken when it arrives.
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

    /// Takes an answer that has arrived.
    fn take(&mut self) -> Option<Answer> {
        match mem::replace(&mut self.0, Source::Gone) {
            Source::Here(answer) => Some(*answer),
            Source::Gone | Source::Later(_) => None,
        }
    }
}

/// Recipient of the answer to a command.
pub(crate) struct Recipient(Receive);

enum Receive {
    /// Passes the answer to a [`Pending`].
    Task(oneshot::Sender<Answer>),
    /// Passes the answer to a [`Pending`], and then drops a value. Boxed because it is rare.
    Watched(Box<(oneshot::Sender<Answer>, Box<dyn Send>)>),
    Background(Box<dyn FnOnce(Answer) + Send>),
}

impl Recipient {
    /// Creates a recipient for a task, and the pending answer that the task can wait for.
    pub(crate) fn task() -> (Self, Pending) {
        let (answer, pending) = oneshot::channel();
        (Self(Receive::Task(answer)), Pending::later(pending))
    }

    /// Like [`task`](Self::task). The `watch` is dropped when the answer arrives or can no longer arrive. Its `drop` must neither block nor
    /// panic, like a function in the background.
    pub(crate) fn watched(watch: impl Send + 'static) -> (Self, Pending) {
        let (answer, pending) = oneshot::channel();
        (Self(Receive::Watched(Box::new((answer, Box::new(watch))))), Pending::later(pending))
    }

    /// Creates a recipient that calls a function with the answer.
    ///
    /// The function is called in the task of the connection. Without a connection, the sender of the command calls it, with every mutex
    /// that it has locked. `receive` must therefore neither block nor panic, send a command to a node, or read the state of a lock.
    pub(crate) fn background(receive: impl FnOnce(Answer) + Send + 'static) -> Self {
        Self(Receive::Background(Box::new(receive)))
    }

    /// Passes `answer` on.
    pub(crate) fn answer(self, answer: Answer) {
        match self.0 {
            Receive::Task(task) => {
                // The caller may be gone.
                let _ = task.send(answer);
            }
            Receive::Watched(watched) => {
                let (task, watch) = *watched;
                // Before the task, which may send another command at once.
                drop(watch);
                let _ = task.send(answer);
            }
            Receive::Background(receive) => receive(answer),
        }
    }

    /// Returns `true` if no caller waits for the answer any more.
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
