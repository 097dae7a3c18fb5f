//! The I/O task of one connection, which either of two tasks drives.
//!
//! The application's runtime (the *host*) is the best place for a connection: a reply wakes the task that waits for it on the same thread.
//! But a host with blocked threads drives nothing. The library's thread can therefore drive the same I/O task, and takes over when the host
//! is silent; see `runtime_failover`.
//!
//! 1. [`State::side`] names the task that may poll. Each task polls the I/O task only in its turn, under the mutex.
//! 2. The library's thread begins, because it has made the connection. It offers the connection to the host at once.
//! 3. The host accepts the offer when it is polled: a blocked host accepts nothing.
//! 4. The library's thread takes over without asking, unless the host is polling at this moment.
//! 5. The socket follows with the next poll ([`DriverSlot`](super::migratable_socket::DriverSlot)). All wakers follow as well, because
//!    each poll sets them again.

use super::connections::Connections;
use super::io_task::IoTask;
use super::live_connection::LiveConnection;
use super::liveness_probe::Seen;
use super::migratable_socket::Driver;
use super::outbox::Outbox;
use super::reach::cut;
use super::socket::Control;
use crate::error::NodeError;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};

pub(super) struct SharedIoTask {
    state: Mutex<State>,
    live: Arc<LiveConnection>,
    control: Arc<Control>,
    /// Receives the report that the connection has ended.
    connections: Arc<Connections>,
}

struct State {
    /// `None` after the end of the connection.
    io_task: Option<IoTask>,
    side: Driver,
    /// `true` if the host may take the connection.
    is_offered: bool,
    /// Number of polls of the host.
    polls: u64,
    /// Wakes the host; `None` before its first poll.
    host: Option<Waker>,
    /// `true` if the host has ended before the connection.
    is_host_gone: bool,
    /// Wakes the library's thread while it drives the connection.
    background: Option<Waker>,
}

/// Result of a turn of the library's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The host drives the connection now.
    Taken,
    /// The connection has ended.
    Ended,
}

/// State of a host that drives a connection, as the library's thread sees it.
pub(super) enum Look {
    /// The host is polling the connection at this moment.
    AtWork,
    Seen(Seen),
    /// The connection or the host has ended, or the host does not drive the connection.
    Over,
}

impl SharedIoTask {
    pub(super) fn new(io_task: IoTask, connections: Arc<Connections>) -> Self {
        let (live, control) = (Arc::clone(io_task.live()), Arc::clone(io_task.control()));
        let state = State {
            io_task: Some(io_task),
            side: Driver::Background,
            is_offered: true,
            polls: 0,
            host: None,
            is_host_gone: false,
            background: None,
        };
        Self { state: Mutex::new(state), live, control, connections }
    }

    /// Returns the outbox of the connection.
    pub(super) fn outbox(&self) -> &Outbox {
        &self.live.outbox
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // An I/O task that has panicked reports this when it is polled again.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state, unless the host is polling: the library's thread never waits.
    fn idle_state(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Drives the connection from the library's thread, until the host takes it.
    pub(super) async fn drive(&self) -> Turn {
        poll_fn(|cx| {
            let Some(mut state) = self.idle_state().filter(|state| state.side == Driver::Background) else {
                return Poll::Ready(Turn::Taken);
            };
            state.background = Some(cx.waker().clone());
            self.poll_io_task(state, cx).map(|()| Turn::Ended)
        })
        .await
    }

    /// Returns the recent activity of the host.
    pub(super) fn look(&self) -> Look {
        let Some(state) = self.idle_state() else { return Look::AtWork };
        match &state.io_task {
            // A host that was polled without an offer, at the moment of the check, has not taken the connection.
            Some(io_task) if state.side == Driver::Host && !state.is_host_gone => {
                let (puts, uses, is_unsent) = self.live.outbox.seen();
                Look::Seen(Seen { polls: state.polls, puts, uses, is_busy: is_unsent || io_task.awaits_answers() })
            }
            _ => Look::Over,
        }
    }

    /// Wakes the host, which may take the connection from now on.
    pub(super) fn offer(&self) {
        // A host that is polling needs no offer.
        let host = self.idle_state().and_then(|mut state| {
            state.is_offered = true;
            state.host.clone()
        });
        host.into_iter().for_each(Waker::wake);
    }

    /// Moves the connection to the library's thread, unless the host is polling at this moment.
    pub(super) fn take_over(&self) {
        if let Some(mut state) = self.idle_state() {
            (state.side, state.is_offered) = (Driver::Background, false);
            self.control.place.change(Driver::Background);
        }
    }

    /// Returns `true` if the host has ended before the connection.
    pub(super) fn is_host_gone(&self) -> bool {
        self.idle_state().is_some_and(|state| state.is_host_gone)
    }

    /// Polls the I/O task. The end of a connection is reported before its commands fail: callers that send a command again should wait for
    /// the next connection.
    fn poll_io_task(&self, mut state: MutexGuard<'_, State>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(io_task) = &mut state.io_task else { return Poll::Ready(()) };
        if Pin::new(io_task).poll(cx).is_pending() {
            return Poll::Pending;
        }
        let mut ended = state.io_task.take();
        // Under the mutex: the library's thread makes the next connection after it has seen the end of this one. The old socket is
        // therefore closed before the first command goes out on the new one.
        if let Some(io_task) = &mut ended {
            io_task.close_socket();
        }
        // The notified tasks may look at the connection at once.
        drop(state);
        self.connections.ended(&self.live, self.reason());
        drop(ended);
        Poll::Ready(())
    }

    /// Returns the reason for the end of the connection.
    pub(super) fn reason(&self) -> NodeError {
        let ended = || self.live.end_reason().cloned();
        let broke = || NodeError::Unreachable("the connection broke".into());
        cut(&self.control).or_else(ended).unwrap_or_else(broke)
    }

    #[cfg(test)]
    pub(super) fn side(&self) -> Driver {
        self.state().side
    }

    /// Ends the connection, unless the host is polling at this moment.
    pub(super) fn end(&self) {
        let io_task = self.idle_state().and_then(|mut state| state.io_task.take());
        // Commands without a reply fail outside of the mutex.
        drop(io_task);
    }
}

/// The task of a connection on the host. Ends with the connection.
pub(super) struct Host(pub(super) Arc<SharedIoTask>);

impl Future for Host {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = &self.0;
        let mut state = shared.state();
        state.polls = state.polls.wrapping_add(1);
        // A task has the same waker all its life.
        state.host.get_or_insert_with(|| cx.waker().clone());
        if state.side == Driver::Background {
            if !state.is_offered {
                return Poll::Pending;
            }
            state.side = Driver::Host;
            shared.control.place.change(Driver::Host);
            state.background.take().into_iter().for_each(Waker::wake);
        }
        shared.poll_io_task(state, cx)
    }
}

/// Runs when the connection or the runtime has ended, or the task has panicked.
impl Drop for Host {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_host_gone = state.io_task.is_some();
        drop(state);
        self.0.outbox().call_attention();
    }
}
