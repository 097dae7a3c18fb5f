//! Carries commands to a connection, and the answers back.
//!
//! One task takes what has gathered in the outbox, sends it in batches and hands out the answers: so one system call,
//! one message to the client crate and one wake-up serve many commands. At each turn the courier
//!
//! 1. goes to the back of the scheduler's queue once if there is something to send, so that all tasks that are ready put their
//!    commands in first,
//! 2. takes what has gathered and gives it to the client crate, behind the question for the server's data if that is due,
//! 3. polls the driver, which writes that to the socket and reads what has come,
//! 4. hands out the answers of every batch that is answered, unless the server's data is in doubt.

use super::batch::Batch;
use super::live_connection::LiveConnection;
use super::question::Outgoing;
use super::socket::Control;
use super::verification::Verification;
use redis::aio::MultiplexedConnection;
use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Moves bytes between the client crate's queue and the socket; it ends when the connection breaks.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection of the client crate.
pub(super) struct Connection {
    pub(super) commands: MultiplexedConnection,
    pub(super) driver: Driver,
    pub(super) control: Arc<Control>,
}

/// The task of one connection. It ends when the connection breaks, or the server is not what it was; what is not answered by
/// then is told so when it is dropped.
pub(super) struct Courier {
    live: Arc<LiveConnection>,
    connection: Connection,
    verification: Verification,
    /// Sent and not answered, in the order of the connection.
    batches: VecDeque<Batch>,
    /// Whether the other tasks have had their turn.
    has_gathered: bool,
    /// Whether it is being polled, and so for ever when that has panicked.
    is_polled: bool,
    /// Whether the server is not what it was: what it has answered since is not handed out.
    is_distrusted: bool,
}

impl Courier {
    pub(super) fn new(live: Arc<LiveConnection>, connection: Connection, verification: Verification) -> Self {
        let batches = VecDeque::new();
        Self { live, connection, verification, batches, has_gathered: false, is_polled: false, is_distrusted: false }
    }

    pub(super) const fn live(&self) -> &Arc<LiveConnection> {
        &self.live
    }

    pub(super) const fn control(&self) -> &Arc<Control> {
        &self.connection.control
    }

    /// Whether an answer is still to come.
    pub(super) fn awaits_answers(&self) -> bool {
        !self.batches.is_empty()
    }

    /// Gives all that has `gathered` to the client crate.
    fn send(&mut self, gathered: Vec<Outgoing>) {
        let mut gathered = gathered.into_iter();
        while gathered.len() > 0 {
            self.batches.push_back(Batch::send(&mut gathered, &self.connection.commands));
        }
    }

    /// Hands out what has been answered. Returns whether the connection can be used on.
    fn deliver(&mut self) -> bool {
        if !self.verification.is_passed(&self.live) {
            return false;
        }
        while !self.verification.holds_back(&self.live)
            && let Some(batch) = self.batches.front_mut()
            && let Poll::Ready(answers) = batch.poll_answers()
        {
            if let Some(batch) = self.batches.pop_front() {
                if answers.is_ok() {
                    self.connection.control.received.is_complete();
                }
                batch.deliver(answers, &self.live);
            }
        }
        !self.live.is_read_only()
    }
}

impl Future for Courier {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Who finds nothing to send was woken by what has come, for which nobody has to wait.
        self.has_gathered = !self.has_gathered && !self.live.outbox.is_empty();
        if self.has_gathered {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if mem::replace(&mut self.is_polled, true) {
            // It has panicked on another thread, as it does on a runtime without sockets: no driver may be polled after that.
            return Poll::Ready(());
        }
        let gathered = self.live.outbox.take(cx);
        let Self { live, connection, verification, .. } = &mut *self;
        verification.ask(live, &connection.commands, !gathered.is_empty());
        self.send(gathered);
        let driver = self.connection.driver.as_mut().poll(cx);
        if driver.is_pending() && !self.deliver() {
            self.is_distrusted = true;
            return Poll::Ready(());
        }
        if self.verification.is_due(&self.live) {
            cx.waker().wake_by_ref();
        }
        self.is_polled = false;
        driver
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        if !self.is_distrusted {
            self.deliver();
        }
        self.live.outbox.close();
        self.batches.drain(..).for_each(Batch::disconnected);
    }
}
