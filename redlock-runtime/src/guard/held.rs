//! What stands behind a guard: the turn of a call, until it ends.
//!
//! Bodies and timers ask here whether they may go on. Several turns behind one guard would be put together here, and nobody
//! else would notice.

use crate::client::acquisition::Acquisition;
use crate::client::local_queue::LocalTurn;
use crate::error::LockError;
use std::task::Waker;
use std::time::Duration;

pub(crate) struct Held {
    turn: LocalTurn,
}

impl Held {
    pub(crate) const fn new(turn: LocalTurn) -> Self {
        Self { turn }
    }

    pub(crate) const fn turn(&self) -> &LocalTurn {
        &self.turn
    }

    pub(crate) fn acquisition(&self) -> &Acquisition {
        self.turn.acquisition()
    }

    /// How much longer the lock is provably held; zero when it was given back.
    pub(crate) fn remaining(&self) -> Duration {
        if self.turn.has_ended() { Duration::ZERO } else { self.acquisition().validity() }
    }

    /// Whether it would not be held for as long without claims, the extensions of which are on their way.
    pub(crate) fn stands_on_claims(&self) -> bool {
        self.acquisition().stands_on_claims()
    }

    /// Whether it was given back.
    pub(crate) fn is_released(&self) -> bool {
        self.turn.has_ended()
    }

    /// Whether a body may go on: the lock is held, or the body itself has given it back.
    pub(crate) fn lets_go_on(&self) -> bool {
        self.is_released() || !self.remaining().is_zero()
    }

    /// Why the lock is not held.
    pub(crate) fn loss(&self) -> LockError {
        if self.is_released() { self.acquisition().released() } else { self.acquisition().lost() }
    }

    /// How much longer a body may go on, after having seen to it that `waker` is woken when that is over.
    pub(crate) fn watch(&self, watcher: &mut Option<u32>, waker: &Waker) -> Duration {
        self.acquisition().watch(watcher, waker)
    }

    pub(crate) fn forget_watcher(&self, watcher: u32) {
        self.acquisition().forget_watcher(watcher);
    }
}
