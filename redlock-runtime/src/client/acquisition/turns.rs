//! Turns of the calls that have a token one after the other, and their visibility for nested calls.
//!
//! Each call has another *turn*, by number. A turn ends before another call can have the token. If a reader first reads
//! data of the token, and then finds the turn unchanged, the data belongs to that call.

use super::{Acquisition, Entrance};
use crate::error::LossCause;
use crate::protocol::fencing_token::FencingToken;
use crate::time::clock::Instant;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Acquisition {
    /// Returns the number of the present turn.
    pub(crate) fn turn(&self) -> u32 {
        self.turn.load(Ordering::Acquire)
    }

    /// Ends the turn with that number. Returns `false` if it had ended before. Nested calls that have a view of the
    /// lock, or wait for one, are woken.
    pub(crate) fn end_turn(&self, turn: u32) -> bool {
        let next = turn.wrapping_add(1);
        let ends = self.turn.compare_exchange(turn, next, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        // Under no mutex, because a woken task may run at once and examine the lock.
        let views = if ends { self.take_views(turn) } else { None };
        if let Some(views) = views {
            views.close();
            self.wake_watchers();
        }
        ends
    }

    /// Takes the entrance of the turn that has just ended, if there is one. Nested calls and tasks rely on that turn: a
    /// loss is recorded for them here, because the end of the token hides it.
    fn take_views(&self, turn: u32) -> Option<Arc<Entrance>> {
        let mut state = self.lock();
        let views = state.take_views()?;
        let now = self.now();
        if state.candidate.held_until().is_none_or(|end| end <= now) {
            let cause = self.cause(&state, now);
            state.rare().lost_turn = Some((turn, cause));
        }
        Some(views)
    }

    /// Returns the cause if the lock was lost before that turn ended, and `None` if the call released the lock.
    pub(crate) fn loss_of_turn(&self, turn: u32) -> Option<LossCause> {
        self.lock().loss_of_turn(turn)
    }

    /// Returns the entrance to views of the lock; `None` if that turn has ended.
    pub(crate) fn views(&self, turn: u32) -> Option<Arc<Entrance>> {
        // Checked under the mutex: the end of the turn takes the entrance away under it, afterwards.
        let mut state = self.lock();
        let is_present = self.turn() == turn;
        is_present.then(|| Arc::clone(state.rare().views.get_or_insert_with(|| Arc::new(Entrance::new()))))
    }

    /// Returns the fencing token of the call with that turn, if it is fenced and its turn has not ended.
    pub(crate) fn fencing_token(&self, turn: u32) -> Option<FencingToken> {
        let token = self.lock().candidate.present_token();
        token.filter(|_| self.turn() == turn)
    }

    /// Keeps the key taken until `end` at least, if that turn has not ended.
    pub(crate) fn keep_until(&self, turn: u32, end: Instant) {
        let mut state = self.lock();
        if self.turn() == turn {
            state.candidate.keep_until(end);
        }
    }

    /// Frees the key of a window at the end of that turn, if it has not ended.
    pub(crate) fn reopen_window(&self, turn: u32) {
        let mut state = self.lock();
        if self.turn() == turn {
            state.candidate.reopen_window();
        }
    }
}
