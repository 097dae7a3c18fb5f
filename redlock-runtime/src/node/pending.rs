//! Answers that are still to come.

use crate::node::Answer;
use crate::node::redis::RedisRequest;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The answer to a command that was sent, given out once.
#[derive(Debug)]
pub(crate) enum Pending {
    Answered(Option<Answer>),
    Redis(RedisRequest),
}

impl Pending {
    pub(crate) const fn answered(answer: Answer) -> Self {
        Self::Answered(Some(answer))
    }

    /// Whether the command had to be sent twice, because the server had lost the script.
    pub(crate) const fn is_repeated(&self) -> bool {
        match self {
            Self::Answered(_) => false,
            Self::Redis(request) => request.is_repeated(),
        }
    }

    pub(crate) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        match self {
            Self::Answered(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
            Self::Redis(request) => request.poll_answer(cx),
        }
    }
}

impl Future for Pending {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        self.poll_answer(cx)
    }
}
