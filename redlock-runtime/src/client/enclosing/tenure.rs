//! What one call has of a lock, as the calls in its body see it.

mod told;

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

/// What one call has of a lock, from when it is obtained to when it is given back, left to another worker or lost. The token
/// may go on after that, with another call.
///
/// One is made at every poll of a body. For a call that has the turn, it is no more than the token with the number of the turn.
#[derive(Clone)]
pub(crate) enum Tenure {
    Turn { acquisition: Arc<Acquisition>, turn: u32, place: Place },
    View(Arc<ViewTenure>),
}

/// That of a nested call; or of one that shares its token with other calls of the process, and then it is in that of all of them.
pub(crate) struct ViewTenure {
    enclosing: Tenure,
    admission: Admission,
    place: Place,
    since: Instant,
    must_end: Option<Instant>,
    /// The end of the view, with the cause if the lock was lost before that.
    ended: OnceLock<(Instant, Option<LossCause>)>,
    /// As [`Views::OfTurn`], for the calls in its body.
    views: Entrance,
    /// By which site it is counted, and its span if anybody wants to see it.
    observed: OnceLock<(SiteId, Mutex<Option<Arc<Span>>>)>,
    /// Whether it was told that it is lost.
    is_lost: AtomicBool,
    /// Where a test reads what becomes of the call.
    #[cfg(feature = "testing")]
    page: OnceLock<Box<crate::stats::Page>>,
}

/// As what a call has its view of a lock.
pub(super) enum Admission {
    /// It is a nested one, was admitted there and gives its place back.
    Nested(Views),
    /// It is one of several calls that have the lock by one token, and leaves when its guard is dropped.
    Member(Member),
}

/// Admits one call at a time to a view of a tenure. Two that do not enclose each other are two bodies that want to be alone.
pub(super) enum Views {
    OfTurn(Arc<Entrance>),
    OfView(Arc<ViewTenure>),
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

impl Tenure {
    /// That of a call which was admitted at `since`, nested or beside others.
    pub(super) fn of_view(
        enclosing: Self,
        admission: Admission,
        place: Place,
        since: Instant,
        must_end: Option<Instant>,
    ) -> Self {
        Self::View(Arc::new(ViewTenure {
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

    /// The token, and the number of the turn that this is of or in.
    fn turn(&self) -> (&Acquisition, u32) {
        match self {
            Self::Turn { acquisition, turn, .. } => (acquisition, *turn),
            Self::View(view) => view.enclosing.turn(),
        }
    }

    pub(crate) fn acquisition(&self) -> &Acquisition {
        self.turn().0
    }

    pub(crate) fn key(&self) -> &LockKey {
        self.acquisition().key()
    }

    /// What is locked, and as what.
    pub(crate) fn parts(&self) -> Parts {
        self.acquisition().parts()
    }

    /// Whether no other body has a lock of the same keys at the same moment: a part of it is not shared, and it is no permit.
    pub(crate) fn is_alone(&self) -> bool {
        !self.acquisition().mode().is_permit() && self.parts().iter().any(|part| part.class == Class::Exclusive)
    }

    /// Where the lock was asked for.
    pub(crate) fn place(&self) -> Place {
        match self {
            Self::Turn { place, .. } => *place,
            Self::View(view) => view.place,
        }
    }

    /// What all locks of its manager share.
    pub(crate) fn shared(&self) -> &Shared {
        self.acquisition().shared()
    }

    /// The fencing token of the call that has the turn, if it is fenced and has the turn still: that of all its views.
    pub(crate) fn fencing_token(&self) -> Option<FencingToken> {
        let (acquisition, turn) = self.turn();
        acquisition.fencing_token(turn)
    }

    /// The key stays taken until then at least, if the call that has the turn has it still.
    pub(crate) fn keep_until(&self, end: Instant) {
        let (acquisition, turn) = self.turn();
        acquisition.keep_until(turn, end);
    }

    /// What admits calls to views of this; `None` when it has ended.
    pub(super) fn views(&self) -> Option<Views> {
        match self {
            Self::Turn { acquisition, turn, .. } => acquisition.views(*turn).map(Views::OfTurn),
            Self::View(view) => Some(Views::OfView(Arc::clone(view))),
        }
    }

    /// Prepares the tenure for a task that inherits the lock: its end wakes the watchers, even if no nested call is inside.
    pub(crate) fn for_a_task(self) -> Self {
        // A tenure that has ended needs no wake-up.
        if let Some(views) = self.views() {
            views.expect_watchers();
        }
        self
    }

    /// Where the call was made that has a view of this, or the last one that had.
    pub(crate) fn admitted(&self) -> Option<Place> {
        self.views()?.admitted()
    }

    /// Whether it is part of the lock of a call that encloses it.
    pub(crate) fn is_view(&self) -> bool {
        matches!(self, Self::View(view) if matches!(view.admission, Admission::Nested(_)))
    }

    /// The part of the call in a lock that several have by one token, if that is what it has.
    pub(super) fn member(&self) -> Option<&Member> {
        match &self.view()?.admission {
            Admission::Nested(_) => None,
            Admission::Member(member) => Some(member),
        }
    }

    /// The number of the member whose part of the lock this is, or is in.
    fn member_number(&self) -> u32 {
        self.outwards().find_map(Self::member).map_or(NO_MEMBER, Member::number)
    }

    /// Wakes `waker` when the call has the lock no more, in place of the one that this `watcher` had before.
    pub(crate) fn watch(&self, watcher: &mut Option<u32>, waker: &Waker) {
        self.acquisition().watch(watcher, self.member_number(), waker);
    }

    /// Wakes those who watch this; and those who watch what other calls have of the lock, unless they have it as other members.
    pub(super) fn call_watchers(&self) {
        self.acquisition().call_watchers_of(self.member_number());
    }

    /// Whether the call has given the lock back by itself.
    pub(crate) fn is_released(&self) -> bool {
        match self {
            Self::Turn { acquisition, turn, .. } => acquisition.turn() != *turn,
            Self::View(view) => view.ended.get().is_some(),
        }
    }

    /// Whether the call has the lock, and can prove it.
    pub(crate) fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How much longer the call provably has the lock.
    pub(crate) fn remaining(&self) -> Duration {
        let proven = self.acquisition().validity();
        // After that: what is proven of the token is the call's only if the call has it still.
        if self.has_ended() {
            return Duration::ZERO;
        }
        self.must_end().map_or(proven, |end| proven.min(end.since(self.shared().clock.now())))
    }

    /// Why the call does not have the lock.
    pub(crate) fn loss(&self) -> LockError {
        let (now, must_end) = (self.shared().clock.now(), self.must_end());
        let used_up = || must_end.filter(|end| *end <= now).map(|_| LossCause::MaxHold);
        let cause = self.cause_of_end().or_else(used_up);
        let ended = self.outwards().filter_map(|tenure| tenure.view()?.ended.get().map(|(at, _)| *at));
        let until = ended.chain(must_end).fold(now, Instant::min);
        self.acquisition().lost_between(self.view().map(|view| view.since), until, cause)
    }

    /// Whether this call or one that encloses it, in whose lock it is, has given the lock back.
    fn has_ended(&self) -> bool {
        self.outwards().any(Self::is_released)
    }

    /// Returns the cause of the innermost call that has ended: a loss before its end, or its release. `None` if none has ended.
    fn cause_of_end(&self) -> Option<LossCause> {
        let lost = match self.outwards().find(|tenure| tenure.is_released())? {
            Self::Turn { acquisition, turn, .. } => acquisition.loss_of_turn(*turn),
            Self::View(view) => view.ended.get().and_then(|(_, lost)| lost.clone()),
        };
        Some(lost.unwrap_or(LossCause::Released))
    }

    /// When the call must be done, or one that encloses it. Of whoever has the turn, the acquisition knows.
    fn must_end(&self) -> Option<Instant> {
        self.outwards().filter_map(|tenure| tenure.view()?.must_end).min()
    }

    fn outwards(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |tenure| Some(&tenure.view()?.enclosing))
    }

    fn view(&self) -> Option<&ViewTenure> {
        match self {
            Self::Turn { .. } => None,
            Self::View(view) => Some(view),
        }
    }

    /// A view ends: its call has the lock no more. `false` when it had ended before. Those who have the lock by way of that call,
    /// or wait to, are woken.
    pub(super) fn end_view(&self) -> bool {
        let Some(view) = self.view() else { return false };
        // Before it has ended, since that hides a loss. Mostly nobody else has noticed it: a body that is lost with the lock of its
        // caller is dropped, and not polled.
        let loss = (!self.is_released() && !self.is_held()).then(|| self.loss());
        if let Some(error) = &loss {
            self.tell_loss(error);
        }
        let (now, cause) = (self.shared().clock.now(), loss.and_then(cause_of));
        if view.ended.set((now, cause)).is_err() {
            return false;
        }
        // Before the next call has the lock.
        #[cfg(feature = "testing")]
        view.note(if self.is_view() { crate::stats::LogEvent::Left {} } else { crate::stats::LogEvent::Ended {} });
        // Otherwise nobody has a view of it or waits for one, and nobody will.
        if view.views.close() {
            self.call_watchers();
        }
        match &view.admission {
            Admission::Nested(views) => views.leave(),
            Admission::Member(_) => self.tell_if_slow(view, now),
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
