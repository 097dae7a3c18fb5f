//! Ownership of a lock by one call, as nested calls in its body see it.

mod metrics;

use crate::client::acquisition::{Acquisition, Entrance, NO_MEMBER};
use crate::client::local_queue::Member;
use crate::client::shared::Shared;
use crate::error::{LockError, LossCause};
use crate::lock::LockKey;
use crate::lock::class::Class;
use crate::lock::parts::Parts;
use crate::observe::spans;
use crate::protocol::fencing_token::FencingToken;
use crate::request::Place;
use crate::stats::SiteId;
use crate::time::clock::Instant;
use std::iter::successors;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;
use std::time::Duration;
use tracing::Span;

/// Ownership of a lock by one call, from its acquisition to its release, detachment or loss. The token may continue
/// after that, with another call.
///
/// One is created at every poll of a body. It is cheap: the `Turn` of a call only contains the token with the number of
/// the turn.
#[derive(Clone)]
pub(crate) enum BodyHold {
    Turn { acquisition: Arc<Acquisition>, turn: u32, place: Place },
    ReentrantEntry(Arc<ReentrantHold>),
}

/// Ownership of a nested call, or of a member. The enclosing ownership of a member is that of all members.
pub(crate) struct ReentrantHold {
    enclosing: BodyHold,
    admission: Admission,
    place: Place,
    since: Instant,
    must_end: Option<Instant>,
    /// End of the view, with the cause if the lock was lost before that.
    ended: OnceLock<(Instant, Option<LossCause>)>,
    /// Entrance for the calls in its body, like [`Views::OfTurn`].
    views: Entrance,
    /// Site for which it is counted, and its span if spans are enabled.
    observed: OnceLock<(SiteId, Mutex<Option<Arc<Span>>>)>,
    /// Set after its loss was logged.
    is_lost: AtomicBool,
    /// Log of the call, for a test.
    #[cfg(feature = "testing")]
    page: OnceLock<Box<crate::stats::CallEntry>>,
}

/// Reason that a call may use the lock.
pub(super) enum Admission {
    /// Nested call, which was admitted by this entrance and leaves it at its end.
    Nested(Views),
    /// Member: one of several calls with one token. It leaves when its guard is dropped.
    Member(Member),
}

/// Entrance that admits one call at a time to a view of an ownership. Two calls that do not enclose each other are two
/// bodies that must not run together.
pub(super) enum Views {
    OfTurn(Arc<Entrance>),
    OfView(Arc<ReentrantHold>),
}

impl Deref for Views {
    type Target = Entrance;

    fn deref(&self) -> &Entrance {
        match self {
            Self::OfTurn(views) => views,
            Self::OfView(view) => &view.views,
        }
    }
}

impl BodyHold {
    /// Creates the ownership of a call that was admitted at `since`, as a nested call or as a member.
    pub(super) fn for_view(
        enclosing: Self,
        admission: Admission,
        place: Place,
        since: Instant,
        must_end: Option<Instant>,
    ) -> Self {
        Self::ReentrantEntry(Arc::new(ReentrantHold {
            enclosing,
            admission,
            place,
            since,
            must_end,
            ended: OnceLock::new(),
            views: Entrance::new(),
            observed: OnceLock::new(),
            is_lost: AtomicBool::new(false),
            #[cfg(feature = "testing")]
            page: OnceLock::new(),
        }))
    }

    /// Returns the token, and the number of the turn to which this belongs.
    fn turn(&self) -> (&Acquisition, u32) {
        match self {
            Self::Turn { acquisition, turn, .. } => (acquisition, *turn),
            Self::ReentrantEntry(view) => view.enclosing.turn(),
        }
    }

    pub(crate) fn acquisition(&self) -> &Acquisition {
        self.turn().0
    }

    pub(crate) fn key(&self) -> &LockKey {
        self.acquisition().key()
    }

    /// Returns the locked names, with their classes.
    pub(crate) fn parts(&self) -> Parts {
        self.acquisition().parts()
    }

    /// Returns `true` if no other body can hold the same keys at the same time. At least one part is exclusive, and it
    /// is not a permit.
    pub(crate) fn is_alone(&self) -> bool {
        !self.acquisition().mode().is_permit() && self.parts().iter().any(|part| part.class == Class::Exclusive)
    }

    /// Returns the source location of the request.
    pub(crate) fn place(&self) -> Place {
        match self {
            Self::Turn { place, .. } => *place,
            Self::ReentrantEntry(view) => view.place,
        }
    }

    /// Returns the state that all locks of its manager share.
    pub(crate) fn shared(&self) -> &Shared {
        self.acquisition().shared()
    }

    /// Returns the fencing token of the call with the turn, if it is fenced and its turn has not ended. All its views
    /// have the same token.
    pub(crate) fn fencing_token(&self) -> Option<FencingToken> {
        let (acquisition, turn) = self.turn();
        acquisition.fencing_token(turn)
    }

    /// Keeps the key taken until `end` at least, if the turn has not ended.
    pub(crate) fn keep_until(&self, end: Instant) {
        let (acquisition, turn) = self.turn();
        acquisition.keep_until(turn, end);
    }

    /// Returns the entrance to views of this ownership; `None` if it has ended.
    pub(super) fn views(&self) -> Option<Views> {
        match self {
            Self::Turn { acquisition, turn, .. } => acquisition.views(*turn).map(Views::OfTurn),
            Self::ReentrantEntry(view) => Some(Views::OfView(Arc::clone(view))),
        }
    }

    /// Prepares the ownership for a task that inherits the lock: its end wakes the watchers, even if no nested call is
    /// inside.
    pub(crate) fn for_a_task(self) -> Self {
        // An ownership that has ended needs no wake-up.
        if let Some(views) = self.views() {
            views.expect_watchers();
        }
        self
    }

    /// Returns the source location of the call that has a view of this ownership, or of the last call that had one.
    pub(crate) fn admitted(&self) -> Option<Place> {
        self.views()?.admitted()
    }

    /// Returns `true` if it is a view of the lock of an enclosing call.
    pub(crate) fn is_view(&self) -> bool {
        matches!(self, Self::ReentrantEntry(view) if matches!(view.admission, Admission::Nested(_)))
    }

    /// Returns the share of the call, if several calls have the lock under one token.
    pub(super) fn member(&self) -> Option<&Member> {
        match &self.view()?.admission {
            Admission::Nested(_) => None,
            Admission::Member(member) => Some(member),
        }
    }

    /// Returns the number of the member to whose share this belongs.
    fn member_number(&self) -> u32 {
        self.outwards().find_map(Self::member).map_or(NO_MEMBER, Member::number)
    }

    /// Registers `waker` for the loss of the lock. It replaces the earlier waker of this `watcher`.
    pub(crate) fn watch(&self, watcher: &mut Option<u32>, waker: &Waker) {
        self.acquisition().watch(watcher, self.member_number(), waker);
    }

    /// Wakes the watchers of this ownership and of other calls with the lock, except other members.
    pub(super) fn wake_watchers(&self) {
        self.acquisition().wake_watchers_of(self.member_number());
    }

    /// Returns `true` if the call itself has released the lock.
    pub(crate) fn is_released(&self) -> bool {
        match self {
            Self::Turn { acquisition, turn, .. } => acquisition.turn() != *turn,
            Self::ReentrantEntry(view) => view.ended.get().is_some(),
        }
    }

    /// Returns `true` if the call holds the lock, and can prove it.
    pub(crate) fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns the time for which the call provably still holds the lock.
    pub(crate) fn remaining(&self) -> Duration {
        let proven = self.acquisition().validity();
        // Checked afterwards: the proof of the token belongs to the call only if its turn has not ended.
        if self.has_ended() {
            return Duration::ZERO;
        }
        self.must_end().map_or(proven, |end| proven.min(end.since(self.shared().clock.now())))
    }

    /// Returns the reason that the call does not have the lock.
    pub(crate) fn loss(&self) -> LockError {
        let (now, must_end) = (self.shared().clock.now(), self.must_end());
        let used_up = || must_end.filter(|end| *end <= now).map(|_| LossCause::MaxHold);
        let cause = self.cause_of_end().or_else(used_up);
        let ended = self.outwards().filter_map(|tenure| tenure.view()?.ended.get().map(|(at, _)| *at));
        let until = ended.chain(must_end).fold(now, Instant::min);
        self.acquisition().lost_between(self.view().map(|view| view.since), until, cause)
    }

    /// Returns `true` if this call, or an enclosing call whose lock it uses, has released the lock.
    fn has_ended(&self) -> bool {
        self.outwards().any(Self::is_released)
    }

    /// Returns the cause of the innermost call that has ended: a loss before its end, or its release. `None` if none
    /// has ended.
    fn cause_of_end(&self) -> Option<LossCause> {
        let lost = match self.outwards().find(|tenure| tenure.is_released())? {
            Self::Turn { acquisition, turn, .. } => acquisition.loss_of_turn(*turn),
            Self::ReentrantEntry(view) => view.ended.get().and_then(|(_, lost)| lost.clone()),
        };
        Some(lost.unwrap_or(LossCause::Released))
    }

    /// Returns the time by which the call, or an enclosing one, must be done. The limit of a call with the turn is
    /// known to the acquisition.
    fn must_end(&self) -> Option<Instant> {
        self.outwards().filter_map(|tenure| tenure.view()?.must_end).min()
    }

    fn outwards(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |tenure| Some(&tenure.view()?.enclosing))
    }

    fn view(&self) -> Option<&ReentrantHold> {
        match self {
            Self::Turn { .. } => None,
            Self::ReentrantEntry(view) => Some(view),
        }
    }

    /// Ends a view: its call does not have the lock any longer. Returns `false` if it had ended before. Calls that use
    /// the lock through that call, or wait to, are woken.
    pub(super) fn end_view(&self) -> bool {
        let Some(view) = self.view() else { return false };
        // Before the end, because that hides a loss. The loss was rarely noticed before: if a body is lost with the
        // lock of its caller, it is dropped and not polled.
        let loss = (!self.is_released() && !self.is_held()).then(|| self.loss());
        if let Some(error) = &loss {
            self.record_loss(error);
        }
        let (now, cause) = (self.shared().clock.now(), loss.and_then(cause_of));
        if view.ended.set((now, cause)).is_err() {
            return false;
        }
        // Before the next call gets the lock.
        #[cfg(feature = "testing")]
        view.note(if self.is_view() { crate::stats::LogEvent::Left {} } else { crate::stats::LogEvent::Ended {} });
        // Otherwise, no call has a view of it or waits for one, and none ever will.
        if view.views.close() {
            self.wake_watchers();
        }
        match &view.admission {
            Admission::Nested(views) => views.leave(),
            Admission::Member(_) => self.log_if_slow(view, now),
        }
        if let Some(known) = view.known() {
            known.counters.ended(now.nanos_since(view.since));
        }
        let span = view.span().and_then(|mut span| span.take());
        if let Some(span) = span {
            spans::ended(&span, if view.is_lost.load(Ordering::Acquire) { "lost" } else { "released" });
            spans::close(span);
        }
        true
    }
}

fn cause_of(error: LockError) -> Option<LossCause> {
    if let LockError::Lost { cause, .. } = error { Some(cause) } else { None }
}
