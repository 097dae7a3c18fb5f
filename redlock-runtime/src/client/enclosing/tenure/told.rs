//! What is counted and told of a call that has its view of a lock: when it loses it, and when it ends.

use super::{Tenure, ViewTenure};
use crate::error::LockError;
use crate::observe::{Named, events, spans};
use crate::stats::{Known, SiteId};
use crate::time::clock::Instant;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::Span;

impl Tenure {
    /// A call that was no nested one has held the lock until `now`: for longer than the lease, if so.
    pub(super) fn tell_if_slow(&self, view: &ViewTenure, now: Instant) {
        let (held, ttl) = (now.since(view.since), self.acquisition().ttl());
        if held <= ttl || view.is_lost.load(Ordering::Acquire) {
            return;
        }
        if let Some(known) = view.known() {
            events::slow_hold(self.named(known), held, ttl);
        }
    }

    /// The lock as it is called in what is told of a call at a site that is `known`.
    fn named<'t>(&'t self, known: &Known) -> Named<'t> {
        let (file, line) = known.line();
        let (key, mode) = (self.shared().told(self.key()), self.acquisition().mode());
        Named { key, mode, template: known.template(), file, line }
    }

    /// A view is counted by that site, and has this span if anybody wants to see it. Returns since when it has the lock.
    pub(crate) fn observe_view(&self, site: SiteId, span: Option<Span>) -> Option<Instant> {
        let view = self.view()?;
        // Only the call that has made the view does this, once.
        let _ = view.observed.set((site, Mutex::new(span.map(Arc::new))));
        Some(view.since)
    }

    /// What becomes of the call with this view is noted there from now on.
    #[cfg(feature = "testing")]
    pub(crate) fn note_in(&self, page: crate::stats::Page) {
        if let Some(view) = self.view() {
            // Only the call that has made the view does this, once.
            let _ = view.page.set(Box::new(page));
        }
    }

    /// The span of the call while it has the lock, if anybody wants to see it.
    pub(crate) fn span(&self) -> Option<Arc<Span>> {
        match self {
            _ if !spans::are_wanted() => None,
            Self::Turn { acquisition, turn, .. } => acquisition.span(*turn),
            Self::View(view) => view.span()?.clone(),
        }
    }

    /// The call with this view has noticed that it is lost, by `error`.
    pub(crate) fn tell_loss(&self, error: &LockError) {
        let LockError::Lost { cause, held_for, .. } = error else { return };
        let Some(view) = self.view().filter(|_| !self.is_released()) else { return };
        if let Some(known) = view.known().filter(|_| !view.is_lost.swap(true, Ordering::AcqRel)) {
            known.counters.lost();
            #[cfg(feature = "testing")]
            self.view().into_iter().for_each(|view| view.note(crate::stats::LogEvent::Lost { cause: cause.clone() }));
            events::lost(self.named(known), cause, *held_for);
        }
    }
}

impl ViewTenure {
    /// Notes what has become of the call, where a test reads it.
    #[cfg(feature = "testing")]
    pub(super) fn note(&self, event: crate::stats::LogEvent) {
        if let Some(page) = self.page.get() {
            page.note(event);
        }
    }

    /// Its span, until it ends.
    pub(super) fn span(&self) -> Option<MutexGuard<'_, Option<Arc<Span>>>> {
        let (_, span) = self.observed.get()?;
        // No code that can panic runs under this mutex.
        Some(span.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is known of the site of the call.
    pub(super) fn known(&self) -> Option<&Known> {
        let (site, _) = self.observed.get()?;
        self.enclosing.shared().sites.get(*site)
    }
}
