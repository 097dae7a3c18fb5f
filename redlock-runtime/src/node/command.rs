//! What a node is asked, and what it answers.

use crate::error::NodeError;
use crate::key::LockKey;
use crate::token::OwnerToken;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::coop::unconstrained;

/// One atomic command about one lock.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) verb: Verb,
    pub(crate) key: LockKey,
    pub(crate) token: OwnerToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// `SET L token NX PX ttl`: take a free lock. The plain command, so that every Redlock client is excluded.
    SetNx { ttl: Duration },
    /// Start the lease anew if the token owns the lock; never creates it.
    Extend { ttl: Duration },
    /// Give the lock back if the token owns it.
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// `SetNx`: the lock is ours.
    Granted,
    /// `SetNx`: somebody has it.
    Held,
    /// `Extend`: the lease starts anew.
    Extended,
    /// `Release`: given back.
    Released,
    /// `Extend`, `Release`: the token does not own the lock.
    NotOwner,
}

pub(crate) type Answer = Result<Reply, NodeError>;

/// The answer to a command that was sent.
pub(crate) enum Pending {
    Answered(Option<Answer>),
    OnTheWire(Pin<Box<dyn Future<Output = Answer> + Send>>),
}

impl Pending {
    pub(crate) const fn answered(answer: Answer) -> Self {
        Self::Answered(Some(answer))
    }

    /// Starts `request`, which must send its command at its first poll without waiting for anything.
    ///
    /// Unconstrained: a task that has used up tokio's cooperative budget, such as one that drops thousands of guards,
    /// would otherwise be told to wait, and its command would not be sent.
    pub(crate) fn start(request: impl Future<Output = Answer> + Send + 'static) -> Self {
        let mut request = Box::pin(unconstrained(request));
        match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Self::answered(answer),
            Poll::Pending => Self::OnTheWire(request),
        }
    }

    /// The answer if it is here; `None` otherwise. Registers no waker.
    pub(crate) fn try_answer(&mut self) -> Option<Answer> {
        match self.poll_answer(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }

    /// Polls for the answer, which is given out once.
    pub(crate) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        match self {
            Self::Answered(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
            Self::OnTheWire(request) => request.as_mut().poll(cx),
        }
    }
}

impl Future for Pending {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        self.poll_answer(cx)
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered(answer) => f.debug_tuple("Answered").field(answer).finish(),
            Self::OnTheWire(_) => f.write_str("OnTheWire"),
        }
    }
}
