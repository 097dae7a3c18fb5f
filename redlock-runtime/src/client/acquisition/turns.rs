//! The calls that have a token one after the other, and what the calls in the body of the present one may see of it.
//!
//! Each has another *turn*, by number. A turn ends before the token may be another call's: so what is read of the token first,
//! and belongs to the turn after that, is that call's.

use super::{Acquisition, Entrance};
use crate::error::LossCause;
use crate::protocol::fencing_token::FencingToken;
use crate::time::clock::Instant;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Acquisition {
    /// The number of the present turn.
    pub(crate) fn turn(&self) -> u32 {
        self.turn.load(Ordering::Acquire)
    }

    /// The turn with that number ends; `false` when it had ended before. Calls in its body that have a view of the lock, or
    /// wait for one, are woken.
    pub(crate) fn end_turn(&self, turn: u32) -> bool {
        let next = turn.wrapping_add(1);
        let ends = self.turn.compare_exchange(turn, next, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        // Under no mutex: who is woken may run at once, and look at the lock.
        let views = if ends { self.take_views(turn) } else { None };
        if let Some(views) = views {
            views.close();
            self.call_watchers();
        }
        ends
    }

    /// Takes the entrance of the turn that has just ended, if there is one. Nested calls and tasks rely on that turn: a loss is
    /// recorded for them here, because the end of the token hides it.
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

    /// What admits one call at a time to a view of the lock; `None` when that turn has ended.
    pub(crate) fn views(&self, turn: u32) -> Option<Arc<Entrance>> {
        // Asked under the mutex: whoever ends the turn takes the views away under it, after that.
        let mut state = self.lock();
        let is_present = self.turn() == turn;
        is_present.then(|| Arc::clone(state.rare().views.get_or_insert_with(|| Arc::new(Entrance::new()))))
    }

    /// The fencing token of the call that has that turn, if it is fenced and has the turn still.
    pub(crate) fn fencing_token(&self, turn: u32) -> Option<FencingToken> {
        let token = self.lock().candidate.present_token();
        token.filter(|_| self.turn() == turn)
    }

    /// The key stays taken until then at least, whatever the call has asked for that has that turn, if it has it still.
    pub(crate) fn keep_until(&self, turn: u32, end: Instant) {
        let mut state = self.lock();
        if self.turn() == turn {
            state.candidate.keep_until(end);
        }
    }

    /// The key of a window is free again when the call ends that has that turn, if it has it still.
    pub(crate) fn reopen_window(&self, turn: u32) {
        let mut state = self.lock();
        if self.turn() == turn {
            state.candidate.reopen_window();
        }
    }
}
