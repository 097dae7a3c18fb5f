//! Lock ownership behind a guard: the turn of a call, or the view of a nested reentrant call.
//!
//! Bodies and timers query it. If one guard ever owned several turns, only this module would combine them.

use crate::client::acquire::{AcquiredLock, Share};
use crate::client::acquisition::{Acquisition, ConfirmedRelease, NO_MEMBER};
use crate::client::enclosing::{BodyHold, Frame, ReentrantEntry};
use crate::client::local_queue::LocalOwner;
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
        turn: LocalOwner,
        /// Location of the request.
        place: Place,
    },
    ReentrantEntry(ReentrantEntry),
}

impl Held {
    pub(crate) fn new(AcquiredLock { share, place, .. }: AcquiredLock) -> Self {
        match share {
            Share::Turn(turn) => Self::Turn { turn, place },
            Share::ReentrantEntry(view) => Self::ReentrantEntry(view),
        }
    }

    pub(crate) fn acquisition(&self) -> &Acquisition {
        match self {
            Self::Turn { turn, .. } => turn.acquisition(),
            Self::ReentrantEntry(view) => view.acquisition(),
        }
    }

    /// Returns the mode of the lock. A view has the mode of the enclosing call.
    pub(crate) fn mode(&self) -> Mode {
        self.acquisition().mode()
    }

    /// Releases the lock. The result has answers to wait for only if no other call of this process takes the lock over. A view
    /// leaves the lock to the enclosing call.
    ///
    /// # Errors
    /// Loss of the lock, if a view was lost before. For a turn, the replies of the nodes report it.
    pub(crate) fn release(&self) -> Result<Option<ConfirmedRelease>, LockError> {
        match self {
            Self::Turn { turn, .. } => Ok(turn.end()),
            Self::ReentrantEntry(view) => {
                let loss = view.loss_of_lock();
                match view.give_back() {
                    None => loss.map_or(Ok(None), Err),
                    release => Ok(release),
                }
            }
        }
    }

    /// Marks the window as not run, so that its key is free after the release. A view never belongs to a window.
    pub(crate) fn reopen_window(&self) {
        if let Self::Turn { turn, .. } = self {
            turn.reopen_window();
        }
    }

    /// Leaves the lock on the nodes under the returned token. A view has no lock to leave, and a permit is released: the returned
    /// token is then unknown to every node.
    pub(crate) fn detach(&self) -> OwnerToken {
        match self {
            // A permit is not detached: the next owner could not know whether it was proven meanwhile.
            Self::Turn { turn, .. } if turn.acquisition().mode().is_permit() => {
                turn.end();
                let shared = turn.acquisition().shared();
                events::permit_not_detached(shared.told(turn.acquisition().key()));
                shared.new_token()
            }
            Self::Turn { turn, .. } => turn.detach(),
            Self::ReentrantEntry(view) => {
                drop(view.give_back());
                let shared = view.acquisition().shared();
                events::not_detached(shared.told(view.acquisition().key()));
                shared.new_token()
            }
        }
    }

    /// Turns the lock into a shared one. Does nothing for a view, because the enclosing call relies on an exclusive lock.
    pub(crate) fn downgrade(&self) {
        if let Self::Turn { turn, .. } = self {
            turn.lower();
        }
    }

    /// Returns the frame of a body, which may see its guard.
    pub(crate) fn frame(&self, shows_guard: bool) -> Frame {
        Frame::for_body(self.tenure(), shows_guard)
    }

    /// Returns the ownership that nested calls in a body see.
    pub(crate) fn tenure(&self) -> BodyHold {
        match self {
            Self::Turn { turn, place } => {
                let (acquisition, turn) = turn.shared();
                BodyHold::Turn { acquisition, turn, place: *place }
            }
            Self::ReentrantEntry(view) => view.tenure().clone(),
        }
    }

    /// Returns how much longer the lock is provably held. Zero after a release.
    pub(crate) fn remaining(&self) -> Duration {
        match self {
            Self::Turn { turn, .. } => {
                let proven = turn.acquisition().validity();
                // Checked after the proof: once the turn has ended, the proven lease may belong to another call.
                if turn.has_ended() { Duration::ZERO } else { proven }
            }
            Self::ReentrantEntry(view) => view.remaining(),
        }
    }

    /// Returns `true` if the lock was released.
    pub(crate) fn is_released(&self) -> bool {
        match self {
            Self::Turn { turn, .. } => turn.has_ended(),
            Self::ReentrantEntry(view) => view.is_released(),
        }
    }

    /// Checks that the token still belongs to this call. An expired lease of a turn passes: the nodes report it.
    ///
    /// # Errors
    /// [`LockError::Lost`] if the turn has ended, or the view is not held any more.
    pub(crate) fn check_extendable(&self) -> Result<(), LockError> {
        let is_ours = match self {
            Self::Turn { turn, .. } => !turn.has_ended(),
            Self::ReentrantEntry(view) => !view.remaining().is_zero(),
        };
        is_ours.then_some(()).ok_or_else(|| self.loss())
    }

    /// Returns the error that explains why the lock is not held.
    pub(crate) fn loss(&self) -> LockError {
        match self {
            Self::Turn { turn, .. } if turn.has_ended() => turn.acquisition().released(),
            Self::Turn { turn, .. } => turn.acquisition().lost(),
            Self::ReentrantEntry(view) => {
                let error = view.loss();
                view.tenure().record_loss(&error);
                error
            }
        }
    }

    /// Returns the span of the call, if a subscriber is interested.
    pub(crate) fn span(&self) -> Option<Arc<Span>> {
        if spans::spans_enabled() { self.tenure().span() } else { None }
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

    fn depends_on_claims(&self) -> bool {
        self.acquisition().depends_on_claims()
    }

    fn watch(&self, watcher: &mut Option<u32>, waker: &Waker) -> Duration {
        match self {
            Self::Turn { turn, .. } => turn.acquisition().watch(watcher, NO_MEMBER, waker),
            Self::ReentrantEntry(view) => {
                view.tenure().watch(watcher, waker);
                view.remaining()
            }
        }
    }

    fn forget_watcher(&self, watcher: u32) {
        self.acquisition().forget_watcher(watcher);
    }
}
