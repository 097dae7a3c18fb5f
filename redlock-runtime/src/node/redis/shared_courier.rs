//! The courier of one connection, which either of two tasks drives.
//!
//! Where the application works, its own runtime (the *host*) is the best place for a connection: an answer wakes the task
//! that waits for it on the same thread. But a host whose threads are blocked drives nothing. So the same courier can be
//! driven from the library's thread, which takes it over when the host is silent; see `relief`.
//!
//! 1. Whose turn it is stands in [`State::side`]. Either task polls the courier in its turn alone, under the mutex.
//! 2. The library's thread begins, since it has made the connection, and offers it to the host at once.
//! 3. The host takes what was offered when it is polled: so a host that is blocked takes nothing.
//! 4. The library's thread takes over without asking, unless the host is just at work.
//! 5. The socket follows with the next poll ([`Place`](super::movable::Place)), and so do all wakers, which each poll sets
//!    anew.

use super::connections::Connections;
use super::courier::Courier;
use super::live_connection::LiveConnection;
use super::movable::Side;
use super::outbox::Outbox;
use super::pulse::Seen;
use super::reach::cut;
use super::socket::Control;
use crate::error::NodeError;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};

pub(super) struct SharedCourier {
    state: Mutex<State>,
    live: Arc<LiveConnection>,
    control: Arc<Control>,
    /// Where the end of the connection is reported.
    connections: Arc<Connections>,
}

struct State {
    /// `None` when the connection has ended.
    courier: Option<Courier>,
    side: Side,
    /// Whether the host may have the connection.
    is_offered: bool,
    /// How often the host was polled.
    polls: u64,
    /// Wakes the host; `None` before its first poll.
    host: Option<Waker>,
    /// Whether the host has ended before the connection.
    is_host_gone: bool,
    /// Wakes the library's thread while that drives the connection.
    background: Option<Waker>,
}

/// How a turn of the library's thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The host drives the connection now.
    Taken,
    /// The connection has ended.
    Ended,
}

/// What the library's thread sees of a host that drives a connection.
pub(super) enum Look {
    /// It is being polled.
    AtWork,
    Seen(Seen),
    /// The connection has ended, or the host has, or it does not drive the connection.
    Over,
}

impl SharedCourier {
    pub(super) fn new(courier: Courier, connections: Arc<Connections>) -> Self {
        let (live, control) = (Arc::clone(courier.live()), Arc::clone(courier.control()));
        let state = State {
            courier: Some(courier),
            side: Side::Background,
            is_offered: true,
            polls: 0,
            host: None,
            is_host_gone: false,
            background: None,
        };
        Self { state: Mutex::new(state), live, control, connections }
    }

    /// What is to be sent on the connection.
    pub(super) fn outbox(&self) -> &Outbox {
        &self.live.outbox
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A courier that has panicked says so when it is polled again.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, unless the host is at work: the library's thread waits for nobody.
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
            let Some(mut state) = self.idle_state().filter(|state| state.side == Side::Background) else {
                return Poll::Ready(Turn::Taken);
            };
            state.background = Some(cx.waker().clone());
            self.poll_courier(state, cx).map(|()| Turn::Ended)
        })
        .await
    }

    /// What the host has done lately.
    pub(super) fn look(&self) -> Look {
        let Some(state) = self.idle_state() else { return Look::AtWork };
        match &state.courier {
            // A host that was polled without an offer, just when its turn was looked at, has not taken the connection.
            Some(courier) if state.side == Side::Host && !state.is_host_gone => {
                let (puts, uses, is_unsent) = self.live.outbox.seen();
                Look::Seen(Seen { polls: state.polls, puts, uses, is_busy: is_unsent || courier.awaits_answers() })
            }
            _ => Look::Over,
        }
    }

    /// Wakes the host, which may have the connection from now on.
    pub(super) fn offer(&self) {
        // A host that is at work needs no offer.
        let host = self.idle_state().and_then(|mut state| {
            state.is_offered = true;
            state.host.clone()
        });
        host.into_iter().for_each(Waker::wake);
    }

    /// The library's thread drives the connection from now on, unless the host is just at work.
    pub(super) fn take_over(&self) {
        if let Some(mut state) = self.idle_state() {
            (state.side, state.is_offered) = (Side::Background, false);
            self.control.place.change(Side::Background);
        }
    }

    /// Whether the host has ended before the connection.
    pub(super) fn is_host_gone(&self) -> bool {
        self.idle_state().is_some_and(|state| state.is_host_gone)
    }

    /// Polls the courier. When the connection has ended, that is reported before anybody is told that there will be no
    /// answer: whoever has something to send again should wait for the next connection.
    fn poll_courier(&self, mut state: MutexGuard<'_, State>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(courier) = &mut state.courier else { return Poll::Ready(()) };
        if Pin::new(courier).poll(cx).is_pending() {
            return Poll::Pending;
        }
        let mut ended = state.courier.take();
        // Under the mutex: the library's thread makes the next connection when it has seen the end of this one. So the old socket is closed
        // before the first command goes out on the new one.
        if let Some(courier) = &mut ended {
            courier.close_socket();
        }
        // Whoever is told may look at the connection at once.
        drop(state);
        self.connections.ended(&self.live, self.reason());
        drop(ended);
        Poll::Ready(())
    }

    /// Why the connection has ended.
    pub(super) fn reason(&self) -> NodeError {
        let ended = || self.live.ends_for().cloned();
        let broke = || NodeError::Unreachable("the connection broke".into());
        cut(&self.control).or_else(ended).unwrap_or_else(broke)
    }

    #[cfg(test)]
    pub(super) fn side(&self) -> Side {
        self.state().side
    }

    /// Ends the connection, unless the host is just at work.
    pub(super) fn end(&self) {
        let courier = self.idle_state().and_then(|mut state| state.courier.take());
        // Whoever waits for an answer is told outside of the mutex.
        drop(courier);
    }
}

/// The task of a connection on the host. It ends with the connection.
pub(super) struct Host(pub(super) Arc<SharedCourier>);

impl Future for Host {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = &self.0;
        let mut state = shared.state();
        state.polls = state.polls.wrapping_add(1);
        // A task has the same waker all its life.
        state.host.get_or_insert_with(|| cx.waker().clone());
        if state.side == Side::Background {
            if !state.is_offered {
                return Poll::Pending;
            }
            state.side = Side::Host;
            shared.control.place.change(Side::Host);
            state.background.take().into_iter().for_each(Waker::wake);
        }
        shared.poll_courier(state, cx)
    }
}

/// The connection has ended, the runtime has, or the task has panicked.
impl Drop for Host {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_host_gone = state.courier.is_some();
        drop(state);
        self.0.outbox().call_attention();
    }
}
