//! Detection of a server that has lost the data which it had when the connection was made.
//!
//! An operator, or a fail-over manager, can make a server the replica of another one, whose data then replaces its data, and make it a
//! master again. Its process and its connections stay the same all the time, and it has forgotten every lock. The replication id
//! (`DataSet`) reveals this:
//!
//! 1. A server with RESP3 announces when it discards its data: client tracking is on, with no key to track. It makes the same announcement
//!    for a `FLUSHALL`, which changes no replication id. The client therefore queries the id at once. Replies are held back until the id
//!    arrives, and announcements in the meantime prove nothing.
//! 2. If the server does not announce it, the id is queried before every batch of commands, and hand-offs that the server announces never
//!    prove anything. If the server does announce it, the id is queried before commands when the last query is too old: some replacements
//!    of data discard nothing.
//! 3. If the data is another one, or the server is a replica, the connection ends. Commands without a reply prove nothing, and the next
//!    handshake decides if the node has a vote.

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

/// Lifetime of a reply for later commands, if the server announces a loss of data. Too short: busy servers are queried more often. Too
/// long: it is noticed later that a server has taken over the data of its own replica.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// State of the announcements on one connection that the server discards data.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubt(Arc<Doubts>);

#[derive(Debug, Default)]
struct Doubts {
    /// The server makes such announcements.
    tells: AtomicBool,
    /// The server has made an announcement, and was not queried since.
    raised: AtomicBool,
    /// The server has made an announcement, and has not replied since.
    open: AtomicBool,
}

impl Doubt {
    pub(super) fn raise(&self) {
        self.0.open.store(true, Ordering::Release);
        self.0.raised.store(true, Ordering::Release);
    }

    /// Returns `true` if the server still has its data, according to its announcements.
    pub(super) fn is_excluded(&self) -> bool {
        self.0.tells.load(Ordering::Acquire) && !self.is_open()
    }

    fn is_raised(&self) -> bool {
        self.0.raised.load(Ordering::Acquire)
    }

    fn is_open(&self) -> bool {
        self.0.open.load(Ordering::Acquire)
    }

    /// Records that the next query is sent.
    fn asked(&self) {
        self.0.raised.store(false, Ordering::Release);
    }

    /// Records a reply, to a query that may have been sent before the announcement.
    fn answered(&self) {
        if !self.is_raised() {
            self.0.open.store(false, Ordering::Release);
        }
    }
}

/// The query of one connection for the data of its server.
pub(super) struct Verification {
    doubt: Doubt,
    /// Lifetime of a reply for later commands.
    good_for: Duration,
    /// Time of the last query, or of the handshake.
    asked_at: Instant,
    /// The query without a reply.
    asked: Option<Asked>,
}

type Asked = Pin<Box<dyn Future<Output = RedisResult<Value>> + Send>>;

impl Verification {
    /// Creates the verification of a server. `tells` is `true` if it announces that it discards data.
    pub(super) fn new(doubt: Doubt, tells: bool) -> Self {
        let good_for = if tells { GOOD_FOR } else { Duration::ZERO };
        doubt.0.tells.store(tells, Ordering::Release);
        Self { doubt, good_for, asked_at: Instant::now(), asked: None }
    }

    /// Queries the server if it is due, before commands are sent if there `are_commands`.
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

    /// Returns `true` if replies have to wait for the data set of the server.
    pub(super) fn holds_back(&self, live: &LiveConnection) -> bool {
        self.doubt.is_open() && live.is_distrusted()
    }

    /// Returns `true` if the server has to be queried at once.
    pub(super) fn is_due(&self, live: &LiveConnection) -> bool {
        self.asked.is_none() && self.doubt.is_raised() && live.is_distrusted()
    }

    /// Reads the reply, if it has arrived. Returns `false` if the connection must not be used any more.
    pub(super) fn check_reply(&mut self, live: &LiveConnection) -> bool {
        let Some(asked) = &mut self.asked else { return true };
        // The driver of the connection delivers the reply, so no task needs to be woken.
        let Poll::Ready(answer) = asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) else { return true };
        self.asked = None;
        let was_open = self.doubt.is_open();
        self.doubt.answered();
        if was_open {
            // After a `FLUSHALL`, the server is the same and its fencing registers are gone.
            live.on_data_discarded();
        }
        let Some(info) = text(answer).map(|text| Info::parse(&text)) else { return true };
        !info.is_replica() && live.has_kept(info.data())
    }
}

/// Queries the server for its data set. The query is sent before this returns.
fn ask(mut connection: MultiplexedConnection) -> Asked {
    let mut question = Cmd::new();
    question.arg("INFO").arg("replication");
    let mut asked: Asked = Box::pin(unconstrained(async move { connection.send_packed_command(&question).await }));
    match asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => asked,
        Poll::Ready(answer) => Box::pin(std::future::ready(answer)),
    }
}

/// Returns the reply as text; `None` if the server refuses the query, which reveals nothing about its data.
fn text(answer: RedisResult<Value>) -> Option<String> {
    redis::from_redis_value(answer.ok()?.extract_error().ok()?).ok()
}
