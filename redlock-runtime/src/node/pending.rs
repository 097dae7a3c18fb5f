//! Answers that are still to come.

use crate::error::NodeError;
use crate::node::Answer;
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

impl Future for Pending {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        self.poll_answer(cx)
    }
}
