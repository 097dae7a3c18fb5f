//! Metrics and events of a call with a view of a lock: its loss, and its end.

use super::{BodyHold, ReentrantHold};
use crate::error::LockError;
use crate::observe::{Named, events, spans};
use crate::stats::{Known, SiteId};
use crate::time::clock::Instant;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::Span;

impl BodyHold {
    /// Logs a member that has held the lock until `now` for longer than the lease.
    pub(super) fn log_if_slow(&self, view: &ReentrantHold, now: Instant) {
        let (held, ttl) = (now.since(view.since), self.acquisition().ttl());
        if held <= ttl || view.is_lost.load(Ordering::Acquire) {
            return;
        }
        if let Some(known) = view.known() {
            events::slow_hold(self.named(known), held, ttl);
        }
    }

    /// Returns the name of the lock in events of a call at a `known` site.
    fn named<'t>(&'t self, known: &Known) -> Named<'t> {
        let (file, line) = known.line();
        let (key, mode) = (self.shared().told(self.key()), self.acquisition().mode());
        Named { key, mode, template: known.template(), file, line }
    }

    /// Sets the site for which a view is counted, and its span if spans are enabled. Returns the start of the view.
    pub(crate) fn observe_view(&self, site: SiteId, span: Option<Span>) -> Option<Instant> {
        let view = self.view()?;
        // Only the call that has created the view does this, once.
        let _ = view.observed.set((site, Mutex::new(span.map(Arc::new))));
        Some(view.since)
    }

    /// Records the later events of the call with this view in the log of a test.
    #[cfg(feature = "testing")]
    pub(crate) fn note_in(&self, page: crate::stats::CallEntry) {
        if let Some(view) = self.view() {
            // Only the call that has created the view does this, once.
            let _ = view.page.set(Box::new(page));
        }
    }

    /// Returns the span of the held lock, if spans are enabled.
    pub(crate) fn span(&self) -> Option<Arc<Span>> {
        match self {
            _ if !spans::spans_enabled() => None,
            Self::Turn { acquisition, turn, .. } => acquisition.span(*turn),
            Self::ReentrantEntry(view) => view.span()?.clone(),
        }
    }

    /// Records that the call with this view has noticed its loss by `error`.
    pub(crate) fn record_loss(&self, error: &LockError) {
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

impl ReentrantHold {
    /// Records an event of the call, for a test.
    #[cfg(feature = "testing")]
    pub(super) fn note(&self, event: crate::stats::LogEvent) {
        if let Some(page) = self.page.get() {
            page.note(event);
        }
    }

    /// Returns its span, until it ends.
    pub(super) fn span(&self) -> Option<MutexGuard<'_, Option<Arc<Span>>>> {
        let (_, span) = self.observed.get()?;
        // Code under this mutex cannot panic.
        Some(span.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the data about the site of the call.
    pub(super) fn known(&self) -> Option<&Known> {
        let (site, _) = self.observed.get()?;
        self.enclosing.shared().sites.get(*site)
    }
}
