//! The I/O task of one connection: sends queued commands, and dispatches the replies.
//!
//! One task sends the contents of the outbox in batches and dispatches the replies. One system call, one message to the client crate and
//! one wake-up therefore serve many commands. On each poll the I/O task
//!
//! 1. yields to the back of the scheduler's queue once if several tasks queue commands, so that all ready tasks queue theirs first,
//! 2. takes the queued commands and passes them to the client crate, after the query for the server's data if it is due,
//! 3. polls the driver, which writes to the socket and reads from it,
//! 4. dispatches the replies of every completed batch, unless the server's data is in doubt.

use super::batch::Batch;
use super::live_connection::LiveConnection;
use super::question::Outgoing;
use super::socket::Control;
use super::verification::Verification;
use redis::aio::MultiplexedConnection;
use std::collections::VecDeque;
use std::future::{Future, ready};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

/// Maximum number of commands that a single task queues at a time: the release of one lock, and the acquisition of the next one. Too small:
/// a single task waits for other tasks that do not exist. Too large: a few tasks cause a system call each.
const OF_ONE_TASK: usize = 2;

/// Buffer capacity that is kept for reuse, in commands. Too small: heavy traffic allocates again and again. Too large: every idle
/// connection keeps the buffer, at about 200 bytes for each command, twice.
const MOST_ROOM: usize = 128;

/// Moves bytes between the client crate's queue and the socket. Ends when the connection breaks.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection of the client crate.
pub(super) struct Connection {
    pub(super) commands: MultiplexedConnection,
    pub(super) driver: Driver,
    pub(super) control: Arc<Control>,
}

/// The task of one connection. Ends when the connection breaks, or when the server has lost its data or was replaced. Commands without a
/// reply fail when the task is dropped.
pub(super) struct IoTask {
    live: Arc<LiveConnection>,
    connection: Connection,
    verification: Verification,
    /// Buffer for the next commands from the outbox.
    room: Vec<Outgoing>,
    /// Sent without a reply, in the order of the connection.
    batches: VecDeque<Batch>,
    others: Others,
    /// `true` while the task is being polled, and permanently after a panic.
    is_polled: bool,
    /// `true` if the server has lost its data or was replaced: later replies are not dispatched.
    is_distrusted: bool,
}

/// The other tasks that queue commands, judged by the last commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    /// The last commands came from one task.
    None,
    /// There were several tasks. They get a turn before the I/O task.
    ToCome,
    /// The other tasks have had their turn.
    Served,
}

impl IoTask {
    pub(super) fn new(live: Arc<LiveConnection>, connection: Connection, verification: Verification) -> Self {
        let (room, batches) = (Vec::new(), VecDeque::new());
        let (others, is_polled, is_distrusted) = (Others::None, false, false);
        Self { live, connection, verification, room, batches, others, is_polled, is_distrusted }
    }

    pub(super) const fn live(&self) -> &Arc<LiveConnection> {
        &self.live
    }

    pub(super) const fn control(&self) -> &Arc<Control> {
        &self.connection.control
    }

    /// Closes the socket.
    pub(super) fn close_socket(&mut self) {
        self.connection.driver = Box::pin(ready(()));
    }

    /// Returns `true` if a reply is still missing.
    pub(super) fn awaits_answers(&self) -> bool {
        !self.batches.is_empty()
    }

    /// Returns `true` if the other tasks should have a turn first. A single task has no other task to wait for, neither with its commands
    /// nor with its replies.
    fn toggle_yield(&mut self) -> bool {
        self.others = match self.others {
            Others::None => Others::None,
            Others::ToCome => Others::Served,
            Others::Served => Others::ToCome,
        };
        self.others == Others::Served
    }

    /// Passes all `gathered` commands to the client crate.
    fn send(&mut self, mut gathered: Vec<Outgoing>) {
        if !gathered.is_empty() {
            self.others = if gathered.len() > OF_ONE_TASK { Others::ToCome } else { Others::None };
        }
        let mut commands = gathered.drain(..).peekable();
        while commands.len() > 0 {
            self.batches.push_back(Batch::send(&mut commands, &self.connection.commands, &self.live));
        }
        drop(commands);
        if gathered.capacity() <= MOST_ROOM {
            self.room = gathered;
        }
    }

    /// Dispatches the received replies. Returns `true` if the connection is still usable.
    fn deliver(&mut self) -> bool {
        // Replies of a server that was left are ignored.
        if self.live.is_left() || !self.verification.check_reply(&self.live) {
            return false;
        }
        while !self.verification.holds_back(&self.live)
            && let Some(batch) = self.batches.front_mut()
            && let Poll::Ready(answers) = batch.poll_answers()
        {
            if let Some(batch) = self.batches.pop_front() {
                if answers.is_ok() {
                    self.connection.control.received.on_complete();
                }
                batch.deliver(answers, &self.live);
            }
        }
        self.live.end_reason().is_none()
    }
}

impl Future for IoTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.toggle_yield() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if mem::replace(&mut self.is_polled, true) {
            // The driver has panicked on another thread, for example on a runtime without sockets. It must not be polled again.
            return Poll::Ready(());
        }
        // While a batch waits for replicas, new commands gather, and are sent together after it. They do not wait one behind the other.
        let waits = self.batches.iter().any(Batch::waits_for_replicas);
        let room = mem::take(&mut self.room);
        let gathered = if waits { room } else { self.live.outbox.take(cx, room) };
        let Self { live, connection, verification, .. } = &mut *self;
        verification.ask(live, &connection.commands, !gathered.is_empty());
        self.send(gathered);
        let driver = self.connection.driver.as_mut().poll(cx);
        if driver.is_pending() && !self.deliver() {
            self.is_distrusted = true;
            return Poll::Ready(());
        }
        let is_answered = waits && !self.batches.iter().any(Batch::waits_for_replicas);
        if is_answered || self.verification.is_due(&self.live) {
            cx.waker().wake_by_ref();
        }
        self.connection.control.awaits_answers.store(self.awaits_answers(), Ordering::Relaxed);
        self.is_polled = false;
        driver
    }
}

impl Drop for IoTask {
    fn drop(&mut self) {
        if !self.is_distrusted {
            self.deliver();
        }
        let Self { live, batches, .. } = self;
        live.close();
        batches.drain(..).for_each(|batch| batch.disconnected(live));
    }
}
