//! Which locks the callers of a call hold: the *frames* of the bodies that are being polled on this thread, the innermost
//! last.
//!
//! 1. A frame stands here exactly while its body is polled, and a drop guard takes it away, also after a panic. So whoever
//!    finds a frame is called by its body, which waits for the call. The frame goes with a task from thread to thread, no
//!    task that a body spawns sees it, and two branches of a `join!` do not see each other. A thread or a task as the owner
//!    would be wrong in all three.
//! 2. A body may drive other tasks on its thread, as by the `block_on` of a runtime or by a `LocalSet`. A frame remembers in
//!    which task it was entered, and no other one finds it. Where there is no task, as in a `block_on`, all frames are found.
//! 3. A frame says nothing any more when its lock is given back, left to another worker or lost; see [`Tenure`].
//! 4. A frame may be in the way of a call, or good for it, if both have a name in common. Which of them it is depends on the mode
//!    of both, of which the tenure knows its own: a lock may be shared from some moment on.
//!
//! A future of somebody else that is polled inside of a body, as by a `Shared` or a `FuturesUnordered`, is taken for a call of
//! the body.

#[cfg(test)]
mod member_tests;
mod tenure;
mod view;

pub(crate) use self::tenure::Tenure;
pub(crate) use self::view::View;

use crate::lock::parts::Parts;
use std::cell::RefCell;
use tokio::task;
use tracing::Span;
use tracing::span::EnteredSpan;

thread_local! {
    static FRAMES: RefCell<Vec<Standing>> = const { RefCell::new(Vec::new()) };
}

/// A frame on the list of a thread.
struct Standing {
    frame: Frame,
    /// In which task it was entered, for this poll.
    task: Option<task::Id>,
}

/// A body that is being polled.
#[derive(Clone)]
pub(crate) struct Frame {
    pub(crate) tenure: Tenure,
    /// Whether the body sees its guard, so that another branch of it may give the lock back at any time.
    pub(crate) shows_guard: bool,
    /// `true` if a task has inherited the lock. The parent of the task may end the lock at any time.
    pub(crate) is_inherited: bool,
}

impl Frame {
    /// That of a body, which may see its guard.
    pub(crate) const fn of_body(tenure: Tenure, shows_guard: bool) -> Self {
        Self { tenure, shows_guard, is_inherited: false }
    }

    /// The frame of a task that has inherited the lock. The parent has the guard.
    pub(crate) const fn inherited(tenure: Tenure) -> Self {
        Self { tenure, shows_guard: true, is_inherited: true }
    }

    /// The frame from `home`, or a `new` one, stands here until what is returned is dropped. Then it is at home
    /// again, for a future that keeps it for the next poll.
    pub(crate) fn enter(home: &mut Option<Self>, new: impl FnOnce() -> Self) -> Inside<'_> {
        let frame = home.take().unwrap_or_else(new);
        let span = frame.tenure.span().map(|span| Span::clone(&span).entered());
        let standing = Standing { frame, task: task::try_id() };
        let is_there =
            FRAMES.try_with(|frames| frames.try_borrow_mut().map(|mut frames| frames.push(standing)).is_ok());
        Inside { home, is_there: is_there.unwrap_or(false), _span: span }
    }

    /// Whether it is about one of these names. Nothing is looked at here that could change.
    pub(crate) fn meets(&self, parts: &Parts) -> bool {
        self.tenure.acquisition().names().any(|name| parts.class_of(name).is_some())
    }
}

/// A frame that stands here.
#[must_use = "the frame is taken away when this is dropped"]
pub(crate) struct Inside<'f> {
    home: &'f mut Option<Frame>,
    is_there: bool,
    /// Left when this is dropped: what is done meanwhile is inside of the span of the call.
    _span: Option<EnteredSpan>,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if self.is_there {
            let standing = FRAMES.try_with(|frames| frames.try_borrow_mut().ok()?.pop()).ok().flatten();
            *self.home = standing.map(|standing| standing.frame);
        }
    }
}

/// All frames that the present task may see, the outermost first.
pub(crate) fn frames() -> Vec<Frame> {
    let copied = |frames: &RefCell<Vec<Standing>>| Some(visible(&frames.try_borrow().ok()?).cloned().collect());
    FRAMES.try_with(copied).ok().flatten().unwrap_or_default()
}

/// Those that are about any of these names, the innermost first.
///
/// Each is copied out when it is asked for: to look at a lock may wake others, who may run at once and poll bodies here.
pub(crate) fn frames_of(parts: &Parts) -> impl Iterator<Item = Frame> {
    (0..).map_while(|nth| {
        let nth_frame = |frames: &RefCell<Vec<Standing>>| {
            visible(&frames.try_borrow().ok()?).rev().filter(|frame| frame.meets(parts)).nth(nth).cloned()
        };
        FRAMES.try_with(nth_frame).ok().flatten()
    })
}

/// The frames whose bodies have called what runs now: no other task does so than the one that polls them.
fn visible(frames: &[Standing]) -> impl DoubleEndedIterator<Item = &Frame> {
    let present = task::try_id();
    let is_visible = move |standing: &&Standing| present.is_none() || standing.task == present;
    frames.iter().filter(is_visible).map(|standing| &standing.frame)
}

#[cfg(test)]
mod task_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod view_tests;
#[cfg(test)]
mod warning_tests;
