//! A command on its way to a server.

use super::link::{Link, refused, reply};
use crate::node::{Answer, Command, Pending, Reply};
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use tokio::task::coop::unconstrained;
use tokio_util::sync::ReusableBoxFuture;

pub(crate) struct RedisRequest {
    link: Arc<Link>,
    command: Command,
    /// `None` only while it is being dropped.
    answer: Option<Wire>,
    is_repeated: bool,
}

type Wire = ReusableBoxFuture<'static, Result<Value, RedisError>>;

impl RedisRequest {
    /// Puts `wire` into the connection's queue before it returns.
    pub(super) fn start(link: Arc<Link>, command: Command, wire: Cmd) -> Pending {
        let mut request = Self { answer: Some(send(&link, wire)), link, command, is_repeated: false };
        // The first poll sends the command.
        match request.poll_answer(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Pending::answered(answer),
            Poll::Pending => Pending::Redis(request),
        }
    }

    pub(crate) const fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    pub(crate) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        while let Some(answer) = &mut self.answer {
            match ready!(answer.poll(cx)).and_then(Value::extract_error) {
                Ok(value) => return Poll::Ready(reply(self.command.verb, &value)),
                Err(error) => match self.by_source(&error) {
                    Some(wire) => {
                        self.answer = Some(send(&self.link, wire));
                        self.is_repeated = true;
                    }
                    // Whatever stands there instead, the token does not own the lock any more.
                    None if is_of_another_type(&error) => return Poll::Ready(Ok(Reply::NotOwner)),
                    None => return Poll::Ready(Err(refused(&error))),
                },
            }
        }
        Poll::Pending
    }

    /// What to send instead when the server has lost the script: after `SCRIPT FLUSH`.
    fn by_source(&self, error: &RedisError) -> Option<Cmd> {
        let lost = error.kind() == ErrorKind::Server(ServerErrorKind::NoScript);
        self.link.script(self.command.verb).filter(|_| lost).map(|script| script.by_source(&self.command))
    }
}

impl Drop for RedisRequest {
    fn drop(&mut self) {
        if let Some(used) = self.answer.take() {
            self.link.spares.put(used);
        }
    }
}

impl fmt::Debug for RedisRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisRequest").field(&self.command).finish()
    }
}

/// Before Redis 7, the error of a script has the code of its own and that of the command in it in its text.
fn is_of_another_type(error: &RedisError) -> bool {
    error.code() == Some("WRONGTYPE") || error.detail().is_some_and(|detail| detail.contains("WRONGTYPE"))
}

/// Unconstrained: a task that has used up tokio's cooperative budget, such as one that drops thousands of guards, would
/// otherwise be told to wait, and its command would not be sent.
fn send(link: &Link, wire: Cmd) -> Wire {
    let mut connection = link.connection.clone();
    link.spares.hold(unconstrained(async move { connection.send_packed_command(&wire).await }))
}

/// Allocations to be used again. The client's future is over a kilobyte, which common allocators serve under a lock.
#[derive(Default)]
pub(super) struct Spares(Mutex<Vec<Wire>>);

impl Spares {
    const MOST: usize = 1024;

    fn hold(&self, request: impl Future<Output = Result<Value, RedisError>> + Send + 'static) -> Wire {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match spare {
            Some(mut spare) => {
                spare.set(request);
                spare
            }
            None => ReusableBoxFuture::new(request),
        }
    }

    fn put(&self, used: Wire) {
        let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spares.len() < Self::MOST {
            spares.push(used);
        }
    }
}
