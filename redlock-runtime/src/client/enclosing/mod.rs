//! Thread-local stack of the locked bodies that are being polled, the innermost last: their *frames* show the locks of
//! the callers of a call.
//!
//! 1. A frame is on the stack exactly while its body is polled; a drop guard pops it, even after a panic. So a call
//!    that finds a frame is nested in that body, and the body waits for the call. The frame moves with a task from
//!    thread to thread. A task that a body spawns does not see it, and two branches of a `join!` do not see each other.
//!    Identifying the owner by thread or by task would be wrong in all three cases.
//! 2. A body may drive other tasks on its thread, for example with the `block_on` of a runtime or with a `LocalSet`. A
//!    frame records the task in which it was entered, and no other task finds it. Without a task, for example in a
//!    `block_on`, all frames are found.
//! 3. A frame has no effect after its lock was released, detached or lost; see [`BodyHold`].
//! 4. If a frame and a call have a name in common, the frame may block the call or satisfy it. That depends on the
//!    modes of both. The ownership knows its present mode, because a lock may be downgraded.
//!
//! A foreign future that is polled inside of a body, for example by a `Shared` or a `FuturesUnordered`, is mistaken for
//! a call of the body.

#[cfg(test)]
mod member_tests;
mod tenure;
mod view;

pub(crate) use self::tenure::BodyHold;
pub(crate) use self::view::ReentrantEntry;

use crate::lock::parts::Parts;
use std::cell::RefCell;
use tokio::task;
use tracing::Span;
use tracing::span::EnteredSpan;

thread_local! {
    static FRAMES: RefCell<Vec<Standing>> = const { RefCell::new(Vec::new()) };
}

/// Frame on the stack of a thread.
struct Standing {
    frame: Frame,
    /// Task in which it was entered, for this poll.
    task: Option<task::Id>,
}

/// Body that is being polled.
#[derive(Clone)]
pub(crate) struct Frame {
    pub(crate) tenure: BodyHold,
    /// Set if the body sees its guard, so that another branch of it may release the lock at any time.
    pub(crate) shows_guard: bool,
    /// `true` if a task has inherited the lock. The parent of the task may end the lock at any time.
    pub(crate) is_inherited: bool,
}

impl Frame {
    /// Creates the frame of a body, which may see its guard.
    pub(crate) const fn for_body(tenure: BodyHold, shows_guard: bool) -> Self {
        Self { tenure, shows_guard, is_inherited: false }
    }

    /// Creates the frame of a task that has inherited the lock. The parent has the guard.
    pub(crate) const fn inherited(tenure: BodyHold) -> Self {
        Self { tenure, shows_guard: true, is_inherited: true }
    }

    /// Pushes the frame from `home`, or a `new` one, until the returned value is dropped. Then the frame is back in
    /// `home`, for a future that keeps it for the next poll.
    pub(crate) fn enter(home: &mut Option<Self>, new: impl FnOnce() -> Self) -> Inside<'_> {
        let frame = home.take().unwrap_or_else(new);
        let span = frame.tenure.span().map(|span| Span::clone(&span).entered());
        let standing = Standing { frame, task: task::try_id() };
        let is_there =
            FRAMES.try_with(|frames| frames.try_borrow_mut().map(|mut frames| frames.push(standing)).is_ok());
        Inside { home, is_there: is_there.unwrap_or(false), _span: span }
    }

    /// Returns `true` if the frame concerns one of these names. It examines nothing that could change.
    pub(crate) fn meets(&self, parts: &Parts) -> bool {
        self.tenure.acquisition().names().any(|name| parts.class_of(name).is_some())
    }
}

/// Frame on the stack, which is popped on drop.
#[must_use = "the frame is taken away when this is dropped"]
pub(crate) struct Inside<'f> {
    home: &'f mut Option<Frame>,
    is_there: bool,
    /// Entered span of the call, which is left on drop.
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

/// Returns all frames that the present task may see, the outermost first.
pub(crate) fn frames() -> Vec<Frame> {
    let copied = |frames: &RefCell<Vec<Standing>>| Some(visible(&frames.try_borrow().ok()?).cloned().collect());
    FRAMES.try_with(copied).ok().flatten().unwrap_or_default()
}

/// Returns the frames that concern any of these names, the innermost first.
///
/// Each is copied on demand: examining a lock may wake tasks, which may run at once and poll bodies on this thread.
pub(crate) fn frames_of(parts: &Parts) -> impl Iterator<Item = Frame> {
    (0..).map_while(|nth| {
        let nth_frame = |frames: &RefCell<Vec<Standing>>| {
            visible(&frames.try_borrow().ok()?).rev().filter(|frame| frame.meets(parts)).nth(nth).cloned()
        };
        FRAMES.try_with(nth_frame).ok().flatten()
    })
}

/// Returns the frames whose bodies have called the running code: only the task that polls them can be that code.
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
