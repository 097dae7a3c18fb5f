//! What stands behind a guard: the turn of a call, until it ends, or the view of a nested call.
//!
//! Bodies and timers ask here whether they may go on. Several turns behind one guard would be put together here, and nobody
//! else would notice.

use crate::client::acquire::{Obtained, Share};
use crate::client::acquisition::{Acquisition, ConfirmedRelease, NO_MEMBER};
use crate::client::enclosing::{Frame, Tenure, View};
use crate::client::local_queue::LocalTurn;
use crate::error::LockError;
use crate::guard::loss_timer::Watchable;
use crate::lock::{Mode, OwnerToken};
use crate::observe::{events, spans};
use crate::request::Place;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use tracing::Span;

pub(crate) enum Held {
    Turn {
        turn: LocalTurn,
        /// Where the lock was asked for.
        place: Place,
    },
    View(View),
}

impl Held {
    pub(crate) fn new(Obtained { share, place, .. }: Obtained) -> Self {
        match share {
            Share::Turn(turn) => Self::Turn { turn, place },
            Share::View(view) => Self::View(view),
        }
    }

    pub(crate) fn acquisition(&self) -> &Acquisition {
        match self {
            Self::Turn { turn, .. } => turn.acquisition(),
            Self::View(view) => view.acquisition(),
        }
    }

    /// Whether the lock is for one call alone or shared with others. That of a view is that of the call which encloses it.
    pub(crate) fn mode(&self) -> Mode {
        self.acquisition().mode()
    }

    /// Gives the lock back. There are answers to wait for only when nobody here has it next. A view leaves the lock with the
    /// call that encloses it.
    ///
    /// # Errors
    /// Why a view was lost before. Whether a turn was, the answers say.
    pub(crate) fn release(&self) -> Result<Option<ConfirmedRelease>, LockError> {
        match self {
            Self::Turn { turn, .. } => Ok(turn.end()),
            Self::View(view) => {
                let loss = view.loss_of_lock();
                match view.give_back() {
                    None => loss.map_or(Ok(None), Err),
                    release => Ok(release),
                }
            }
        }
    }

    /// The key of a window is free again when the lock is given back. No view is one of a window.
    pub(crate) fn reopen_window(&self) {
        if let Self::Turn { turn, .. } = self {
            turn.reopen_window();
        }
    }

    /// Leaves the lock with the nodes, under the token that is returned. A view has no lock to leave, and a permit is given back:
    /// then the token is one that no node knows.
    pub(crate) fn detach(&self) -> OwnerToken {
        match self {
            // Whoever took a permit up would not know whether it was proven meanwhile.
            Self::Turn { turn, .. } if turn.acquisition().mode().is_permit() => {
                turn.end();
                let shared = turn.acquisition().shared();
                events::permit_not_detached(shared.told(turn.acquisition().key()));
                shared.new_token()
            }
            Self::Turn { turn, .. } => turn.detach(),
            Self::View(view) => {
                drop(view.give_back());
                let shared = view.acquisition().shared();
                events::not_detached(shared.told(view.acquisition().key()));
                shared.new_token()
            }
        }
    }

    /// Shares the lock with others from now on. A view leaves that to the call that encloses it, which relies on having it alone.
    pub(crate) fn downgrade(&self) {
        if let Self::Turn { turn, .. } = self {
            turn.lower();
        }
    }

    /// The frame of a body, which may see its guard.
    pub(crate) fn frame(&self, shows_guard: bool) -> Frame {
        Frame::of_body(self.tenure(), shows_guard)
    }

    /// What calls in a body see of the lock.
    pub(crate) fn tenure(&self) -> Tenure {
        match self {
            Self::Turn { turn, place } => {
                let (acquisition, turn) = turn.shared();
                Tenure::Turn { acquisition, turn, place: *place }
            }
            Self::View(view) => view.tenure().clone(),
        }
    }

    /// How much longer the lock is provably held; zero when it was given back.
    pub(crate) fn remaining(&self) -> Duration {
        match self {
            Self::Turn { turn, .. } => {
                let proven = turn.acquisition().validity();
                // After that: what is proven may be another call's as soon as the turn has ended.
                if turn.has_ended() { Duration::ZERO } else { proven }
            }
            Self::View(view) => view.remaining(),
        }
    }

    /// Whether it was given back.
    pub(crate) fn is_released(&self) -> bool {
        match self {
            Self::Turn { turn, .. } => turn.has_ended(),
            Self::View(view) => view.is_released(),
        }
    }

    /// # Errors
    /// [`LockError::Lost`] when the token is not this call's any more. A lease that has run out is found so by the nodes.
    pub(crate) fn may_be_extended(&self) -> Result<(), LockError> {
        let is_ours = match self {
            Self::Turn { turn, .. } => !turn.has_ended(),
            Self::View(view) => !view.remaining().is_zero(),
        };
        is_ours.then_some(()).ok_or_else(|| self.loss())
    }

    /// Why the lock is not held.
    pub(crate) fn loss(&self) -> LockError {
        match self {
            Self::Turn { turn, .. } if turn.has_ended() => turn.acquisition().released(),
            Self::Turn { turn, .. } => turn.acquisition().lost(),
            Self::View(view) => {
                let error = view.loss();
                view.tenure().tell_loss(&error);
                error
            }
        }
    }

    /// The span of the call, if anybody wants to see it.
    pub(crate) fn span(&self) -> Option<Arc<Span>> {
        if spans::are_wanted() { self.tenure().span() } else { None }
    }
}

/// Only the body that has the guard can release the lock, so a released lock does not stop the body.
impl Watchable for Held {
    fn is_released_by_body(&self) -> bool {
        self.is_released()
    }

    fn remaining(&self) -> Duration {
        self.remaining()
    }

    fn loss(&self) -> LockError {
        self.loss()
    }

    fn stands_on_claims(&self) -> bool {
        self.acquisition().stands_on_claims()
    }

    fn watch(&self, watcher: &mut Option<u32>, waker: &Waker) -> Duration {
        match self {
            Self::Turn { turn, .. } => turn.acquisition().watch(watcher, NO_MEMBER, waker),
            Self::View(view) => {
                view.tenure().watch(watcher, waker);
                view.remaining()
            }
        }
    }

    fn forget_watcher(&self, watcher: u32) {
        self.acquisition().forget_watcher(watcher);
    }
}
