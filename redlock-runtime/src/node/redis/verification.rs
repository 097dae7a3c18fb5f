//! Finds out whether a server still has the data that it had when the connection was made.
//!
//! An operator, or whatever watches over fail-overs, can make a server the replica of another one, whose data then takes
//! the place of its own, and make it a master again. Its process and its connections are the same all the time, and it has
//! forgotten every lock. What tells is its replication id (`DataSet`):
//!
//! 1. The server says unasked when it throws its data away, where it speaks RESP3: client tracking is on, with no key to
//!    track. It says the same of a `FLUSHALL`, which changes no replication id. So it is asked for that at once, and what
//!    it has answered meanwhile is held back until the answer is here, and what it announces meanwhile proves nothing.
//! 2. Where it does not say it, it is asked before every batch of commands, and what it announces unasked never proves anything.
//!    Where it does, it is asked before commands if
//!    that was not done for a while, because not everything that replaces data throws some away.
//! 3. When the data is another one, or the server a replica, the connection ends: commands without an answer prove
//!    nothing, and the next handshake decides what the node is worth.

use super::info::Info;
use super::live_connection::LiveConnection;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisResult, Value};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::coop::unconstrained;
use tokio::time::Instant;

/// How long an answer of a server that tells unasked is good for commands that are sent later. Shorter, busy servers are
/// asked more often; longer, it is noticed later that a server has taken over what a replica of its own was told.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// Whether the server on one connection has said that it throws data away.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubt(Arc<Doubts>);

#[derive(Debug, Default)]
struct Doubts {
    /// It says so unasked.
    tells: AtomicBool,
    /// It has said so, and was not asked since.
    raised: AtomicBool,
    /// It has said so, and has not answered since.
    open: AtomicBool,
}

impl Doubt {
    pub(super) fn raise(&self) {
        self.0.open.store(true, Ordering::Release);
        self.0.raised.store(true, Ordering::Release);
    }

    /// Whether the server still has what it had, as far as it tells unasked.
    pub(super) fn is_excluded(&self) -> bool {
        self.0.tells.load(Ordering::Acquire) && !self.is_open()
    }

    fn is_raised(&self) -> bool {
        self.0.raised.load(Ordering::Acquire)
    }

    fn is_open(&self) -> bool {
        self.0.open.load(Ordering::Acquire)
    }

    /// The question that follows is asked.
    fn asked(&self) {
        self.0.raised.store(false, Ordering::Release);
    }

    /// An answer is here, to a question that may have been asked before the doubt.
    fn answered(&self) {
        if !self.is_raised() {
            self.0.open.store(false, Ordering::Release);
        }
    }
}

/// The question of one connection to its server.
pub(super) struct Verification {
    doubt: Doubt,
    /// How long an answer is good for commands that are sent later.
    good_for: Duration,
    /// When the server was last asked, or has said it in the handshake.
    asked_at: Instant,
    /// The question that is not answered.
    asked: Option<Asked>,
}

type Asked = Pin<Box<dyn Future<Output = RedisResult<Value>> + Send>>;

impl Verification {
    /// For a server that `tells` unasked that it throws data away, or does not.
    pub(super) fn new(doubt: Doubt, tells: bool) -> Self {
        let good_for = if tells { GOOD_FOR } else { Duration::ZERO };
        doubt.0.tells.store(tells, Ordering::Release);
        Self { doubt, good_for, asked_at: Instant::now(), asked: None }
    }

    /// Asks the server if that is due, before commands are sent if there `are_commands`.
    pub(super) fn ask(&mut self, live: &LiveConnection, connection: &MultiplexedConnection, are_commands: bool) {
        if self.asked.is_some() || !live.is_distrusted() {
            return;
        }
        let is_stale = || are_commands && self.asked_at.elapsed() >= self.good_for;
        if self.doubt.is_raised() || is_stale() {
            self.doubt.asked();
            self.asked_at = Instant::now();
            self.asked = Some(ask(connection.clone()));
        }
    }

    /// Whether answers have to wait for what the server says of its data.
    pub(super) fn holds_back(&self, live: &LiveConnection) -> bool {
        self.doubt.is_open() && live.is_distrusted()
    }

    /// Whether the server has to be asked at once.
    pub(super) fn is_due(&self, live: &LiveConnection) -> bool {
        self.asked.is_none() && self.doubt.is_raised() && live.is_distrusted()
    }

    /// Takes the answer in, if it is here. `false` when the connection must not be used any more.
    pub(super) fn is_passed(&mut self, live: &LiveConnection) -> bool {
        let Some(asked) = &mut self.asked else { return true };
        // The driver of the connection brings the answer, and nobody needs to be woken for it.
        let Poll::Ready(answer) = asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) else { return true };
        self.asked = None;
        let was_open = self.doubt.is_open();
        self.doubt.answered();
        if was_open {
            // After a `FLUSHALL`, the server is the same and its fencing registers are gone.
            live.has_thrown_data_away();
        }
        let Some(info) = text(answer).map(|text| Info::parse(&text)) else { return true };
        !info.is_replica() && live.has_kept(info.data())
    }
}

/// Asks the server which data it has. The question is sent before this returns.
fn ask(mut connection: MultiplexedConnection) -> Asked {
    let mut question = Cmd::new();
    question.arg("INFO").arg("replication");
    let mut asked: Asked = Box::pin(unconstrained(async move { connection.send_packed_command(&question).await }));
    match asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => asked,
        Poll::Ready(answer) => Box::pin(std::future::ready(answer)),
    }
}

/// The answer as text; `None` when the server refuses it, which says nothing of its data.
fn text(answer: RedisResult<Value>) -> Option<String> {
    redis::from_redis_value(answer.ok()?.extract_error().ok()?).ok()
}
