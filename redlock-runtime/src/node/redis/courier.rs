//! Carries commands to a connection, and the answers back.
//!
//! One task takes what has gathered in the outbox, sends it in batches and hands out the answers: so one system call,
//! one message to the client crate and one wake-up serve many commands. At each turn the courier
//!
//! 1. goes to the back of the scheduler's queue once if several tasks put commands in, so that all that are ready do so first,
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
use std::future::{Future, ready};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

/// A task alone puts in so many commands at a time: the release of one lock, and the acquisition of the next one. Smaller, and
/// a single task waits for others that are not there; larger, and few tasks have a system call each.
const OF_ONE_TASK: usize = 2;

/// Room for so many commands is used again. Smaller, and much traffic makes room again and again; larger, and every
/// connection keeps it when it is idle: each takes about 200 bytes, twice.
const MOST_ROOM: usize = 128;

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
    /// Room for what is taken out next.
    room: Vec<Outgoing>,
    /// Sent and not answered, in the order of the connection.
    batches: VecDeque<Batch>,
    others: Others,
    /// Whether it is being polled, and so for ever when that has panicked.
    is_polled: bool,
    /// Whether the server is not what it was: what it has answered since is not handed out.
    is_distrusted: bool,
}

/// Who else puts commands in, as far as the last ones tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    /// It was one task.
    None,
    /// There were several, and they are to have a turn before the courier has one.
    ToCome,
    /// They have had it.
    Served,
}

impl Courier {
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

    /// Whether an answer is still to come.
    pub(super) fn awaits_answers(&self) -> bool {
        !self.batches.is_empty()
    }

    /// Whether the other tasks should have a turn first. A task alone has nobody to wait for, neither with what it sends nor
    /// with what it is answered.
    fn lets_gather(&mut self) -> bool {
        self.others = match self.others {
            Others::None => Others::None,
            Others::ToCome => Others::Served,
            Others::Served => Others::ToCome,
        };
        self.others == Others::Served
    }

    /// Gives all that has `gathered` to the client crate.
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

    /// Hands out what has been answered. Returns whether the connection can be used on.
    fn deliver(&mut self) -> bool {
        // What a server has answered that was left meanwhile counts for nothing.
        if self.live.is_left() || !self.verification.is_passed(&self.live) {
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
        self.live.ends_for().is_none()
    }
}

impl Future for Courier {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.lets_gather() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if mem::replace(&mut self.is_polled, true) {
            // It has panicked on another thread, as it does on a runtime without sockets: no driver may be polled after that.
            return Poll::Ready(());
        }
        // Those that come meanwhile go out together behind it: so many do not wait one behind the other.
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

impl Drop for Courier {
    fn drop(&mut self) {
        if !self.is_distrusted {
            self.deliver();
        }
        let Self { live, batches, .. } = self;
        live.close();
        batches.drain(..).for_each(|batch| batch.disconnected(live));
    }
}
