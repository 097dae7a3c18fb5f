//! What one call has of a lock, as the calls in its body see it.

use crate::client::acquisition::Acquisition;
use crate::client::shared::Shared;
use crate::error::{LockError, LossCause};
use crate::lock::LockKey;
use crate::observe::{Named, events};
use crate::protocol::fencing_token::FencingToken;
use crate::request::Place;
use crate::stats::{Known, SiteId};
use crate::time::clock::Instant;
use std::iter::successors;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::Span;

/// What one call has of a lock, from when it is obtained to when it is given back, left to another worker or lost. The token
/// may go on after that, with another call.
pub(crate) struct Tenure {
    acquisition: Arc<Acquisition>,
    place: Place,
    /// What it was obtained with. The acquisition knows only that of whoever has the lock now.
    fencing_token: Option<FencingToken>,
    has_ended: AtomicBool,
    /// Whose view it is, if it is one.
    of: Option<ViewOf>,
    /// One call at a time has a view of it. Two that do not enclose each other are two bodies that want to be alone.
    views: Semaphore,
    /// The span of the call while it has the lock, if anybody wants to see it.
    span: OnceLock<Span>,
}

/// What a view adds to the tenure that it is of.
struct ViewOf {
    enclosing: Arc<Tenure>,
    since: Instant,
    must_end: Option<Instant>,
    /// By which site it is counted.
    site: OnceLock<SiteId>,
    /// Whether it was told that it is lost.
    is_lost: AtomicBool,
}

impl ViewOf {
    /// What is known of the site of the call.
    fn known(&self) -> Option<&Known> {
        self.enclosing.shared().sites.get(*self.site.get()?)
    }
}

impl Tenure {
    /// The tenure of whoever has the turn.
    pub(super) const fn of_turn(
        acquisition: Arc<Acquisition>,
        place: Place,
        fencing_token: Option<FencingToken>,
    ) -> Self {
        let (has_ended, views) = (AtomicBool::new(false), Semaphore::const_new(1));
        Self { acquisition, place, fencing_token, has_ended, of: None, views, span: OnceLock::new() }
    }

    /// The tenure of a call that has entered, at `since`.
    pub(super) fn of_view(enclosing: Arc<Self>, place: Place, since: Instant, must_end: Option<Instant>) -> Self {
        let turn = Self::of_turn(Arc::clone(&enclosing.acquisition), place, enclosing.fencing_token);
        let (site, is_lost) = (OnceLock::new(), AtomicBool::new(false));
        Self { of: Some(ViewOf { enclosing, since, must_end, site, is_lost }), ..turn }
    }

    pub(crate) fn acquisition(&self) -> &Acquisition {
        &self.acquisition
    }

    pub(crate) fn key(&self) -> &LockKey {
        self.acquisition.key()
    }

    /// Where the lock was asked for.
    pub(crate) const fn place(&self) -> Place {
        self.place
    }

    /// What all locks of its manager share.
    pub(crate) fn shared(&self) -> &Shared {
        self.acquisition.shared()
    }

    /// The fencing token of the call that has the turn, if it is fenced: that of all its views.
    pub(crate) const fn fencing_token(&self) -> Option<FencingToken> {
        self.fencing_token
    }

    /// The key stays taken until then at least, if the call has the lock still.
    pub(crate) fn keep_until(&self, end: Instant) {
        // Asked under the mutex of the acquisition: a tenure ends before the token passes on, which is done under it as well.
        self.acquisition.keep_until(end, || !self.has_ended());
    }

    /// Whether one call more may have a view of this now. It ends with [`end`](Self::end) of the view.
    pub(super) fn try_admit(&self) -> bool {
        // The view gives it back.
        self.views.try_acquire().map(SemaphorePermit::forget).is_ok()
    }

    /// The same, behind those that came before; `false` when the tenure has ended.
    ///
    /// # Cancel safety
    /// The place is given up.
    pub(super) async fn admit(&self) -> bool {
        self.views.acquire().await.map(SemaphorePermit::forget).is_ok()
    }

    /// Whether it is part of the lock of a call that encloses it.
    pub(crate) const fn is_view(&self) -> bool {
        self.of.is_some()
    }

    /// The call has the lock no more; `false` when it had ended before. Those that have it by way of this call have lost it,
    /// and are woken.
    pub(super) fn end(&self) -> bool {
        if self.has_ended.swap(true, Ordering::AcqRel) {
            return false;
        }
        // Otherwise nobody has a view or waits for one, and whoever comes later finds that it has ended.
        if self.views.available_permits() == 0 {
            self.views.close();
            self.acquisition.call_watchers();
        }
        if let Some(of) = &self.of {
            of.enclosing.views.add_permits(1);
            self.count_end(of);
        }
        true
    }

    /// The call is counted by that site from now on, and has this span, if it is a view.
    pub(crate) fn observe_view(&self, site: SiteId, span: Span) {
        if let Some(of) = &self.of {
            // Only the call that has made the view does this, once.
            let _ = of.site.set(site);
        }
        self.observe(span);
    }

    /// The call has this span while it has the lock.
    pub(crate) fn observe(&self, span: Span) {
        if !span.is_none() {
            // Only the call that has made the tenure does this, once.
            let _ = self.span.set(span);
        }
    }

    /// The span of the call while it has the lock, if anybody wants to see it.
    pub(crate) fn span(&self) -> Option<&Span> {
        self.span.get()
    }

    /// The call with this view has noticed that it is lost, by `error`.
    pub(crate) fn tell_loss(&self, error: &LockError) {
        let LockError::Lost { cause, held_for, .. } = error else { return };
        let Some(of) = self.of.as_ref().filter(|_| !self.is_released()) else { return };
        if let Some(known) = of.known().filter(|_| !of.is_lost.swap(true, Ordering::AcqRel)) {
            known.counters.lost();
            let (file, line) = known.line();
            events::lost(Named { key: self.key(), template: known.template(), file, line }, cause, *held_for);
        }
    }

    /// A view has ended.
    fn count_end(&self, of: &ViewOf) {
        if let Some(known) = of.known() {
            known.counters.ended(self.shared().clock.now().nanos_since(of.since));
        }
    }

    /// Since when the call has had the lock, if it is a view.
    pub(crate) fn viewed_since(&self) -> Option<Instant> {
        self.of.as_ref().map(|of| of.since)
    }

    /// Whether the call has given the lock back by itself.
    pub(super) fn is_released(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Whether the call has the lock, and can prove it.
    pub(crate) fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How much longer the call provably has the lock.
    pub(crate) fn remaining(&self) -> Duration {
        let proven = self.acquisition.validity();
        // After that: what is proven of the token is the call's only if the call has it still.
        if self.has_ended() {
            return Duration::ZERO;
        }
        self.must_end().map_or(proven, |end| proven.min(end.since(self.shared().clock.now())))
    }

    /// Why the call does not have the lock.
    pub(crate) fn loss(&self) -> LockError {
        let (now, must_end) = (self.shared().clock.now(), self.must_end());
        let cause = if self.has_ended() {
            Some(LossCause::Released)
        } else {
            must_end.filter(|end| *end <= now).map(|_| LossCause::MaxHold)
        };
        let until = must_end.map_or(now, |end| end.min(now));
        self.acquisition.lost_between(self.of.as_ref().map(|of| of.since), until, cause)
    }

    /// Whether this call or one that encloses it, in whose lock it is, has given the lock back.
    fn has_ended(&self) -> bool {
        self.outwards().any(Self::is_released)
    }

    /// When the call must be done, or one that encloses it. Of whoever has the turn, the acquisition knows.
    fn must_end(&self) -> Option<Instant> {
        self.outwards().filter_map(|tenure| tenure.of.as_ref()?.must_end).min()
    }

    fn outwards(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |tenure| tenure.of.as_ref().map(|of| &*of.enclosing))
    }
}
