//! Answers that are still to come, and who gets them.

use crate::error::NodeError;
use crate::protocol::command::Answer;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot::{self, error::TryRecvError};

/// The answer to a command that was sent, given out once.
#[derive(Debug)]
pub(crate) enum Pending {
    Answered(Option<Answer>),
    Redis(oneshot::Receiver<Answer>),
}

impl Pending {
    pub(crate) const fn answered(answer: Answer) -> Self {
        Self::Answered(Some(answer))
    }

    pub(crate) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        let answer = match self {
            Self::Answered(answer) => return answer.take().map_or(Poll::Pending, Poll::Ready),
            Self::Redis(answer) => ready!(Pin::new(answer).poll(cx)),
        };
        *self = Self::Answered(None);
        // A courier that is gone has answered nothing.
        Poll::Ready(answer.unwrap_or(Err(NodeError::Disconnected)))
    }
}

impl Pending {
    /// The answer, if it is here. Whoever waits for it is not forgotten.
    pub(crate) fn try_answer(&mut self) -> Option<Answer> {
        let answer = match self {
            Self::Answered(answer) => return answer.take(),
            Self::Redis(answer) => answer.try_recv(),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Closed) => Err(NodeError::Disconnected),
        };
        *self = Self::Answered(None);
        Some(answer)
    }
}

/// Who gets the answer to a command.
pub(crate) enum Recipient {
    /// A task that may wait for it.
    Task(oneshot::Sender<Answer>),
    /// Called in the task of the connection, or by whoever sends when there is none, with all that he has locked: so it
    /// must neither block nor panic, send anything to a node, or look at a lock.
    Background(Box<dyn FnOnce(Answer) + Send>),
}

impl Recipient {
    pub(crate) fn task() -> (Self, Pending) {
        let (answer, pending) = oneshot::channel();
        (Self::Task(answer), Pending::Redis(pending))
    }

    pub(crate) fn background(receive: impl FnOnce(Answer) + Send + 'static) -> Self {
        Self::Background(Box::new(receive))
    }

    pub(crate) fn answer(self, answer: Answer) {
        match self {
            Self::Task(task) => {
                // Whoever asked may be gone.
                let _ = task.send(answer);
            }
            Self::Background(receive) => receive(answer),
        }
    }

    /// Whether nobody wants the answer any more.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Task(task) if task.is_closed())
    }
}

impl Future for Pending {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        self.poll_answer(cx)
    }
}
