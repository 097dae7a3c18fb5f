//! Tracing and metrics of an acquisition.

use super::metrics::{AcquireMetrics, failure};
use super::path::{log_no_quorum, named};
use super::{AcquiredLock, Call};
use crate::client::acquisition::Acquisition;
#[cfg(feature = "testing")]
use crate::client::enclosing::ReentrantEntry;
#[cfg(feature = "testing")]
use crate::client::local_queue::LocalOwner;
use crate::client::timers::timeout;
use crate::error::LockError;
use crate::observe::{Named, events, spans};
use crate::protocol::fencing_token::FencingToken;
use crate::stats::Failure;
use crate::time::clock::Instant;
use std::pin::pin;
use std::time::Duration;
use tracing::{Instrument, Span};

/// Wait after which a waiting call is logged. Smaller: ordinary hand-overs are logged. Larger: the log shows less about
/// contended locks.
const WAITING_AFTER: Duration = Duration::from_millis(100);

impl Call<'_> {
    /// Records the outcome of the call, unless it was recorded before.
    pub(super) fn on_answered(&self, mut asked: AcquireMetrics<'_>, outcome: &Result<AcquiredLock, LockError>) {
        match outcome {
            Ok(_) => asked.is_answered = true,
            Err(error) => {
                asked.failed(failure(error, self.is_of_window()));
                #[cfg(feature = "testing")]
                self.note(&crate::stats::LogEvent::Failed { error: error.clone() });
            }
        }
    }

    /// Records the outcome of the call for a test.
    #[cfg(feature = "testing")]
    fn note(&self, event: &crate::stats::LogEvent) {
        self.page().into_iter().for_each(|page| page.note(event.clone()));
    }

    #[cfg(feature = "testing")]
    fn page(&self) -> Option<crate::stats::CallEntry> {
        let (notebook, template) = (self.shared().notebook.clone()?, self.site.template());
        Some(crate::stats::CallEntry { notebook, parts: self.parts.clone(), mode: self.mode, template })
    }

    /// Records the acquisition for a test.
    #[cfg(feature = "testing")]
    pub(super) fn note_stay(&self, turn: &LocalOwner, fencing_token: Option<FencingToken>) {
        let Some(page) = self.page() else { return };
        let permits = self.mode.is_permit().then_some(self.permits);
        page.note(crate::stats::LogEvent::Acquired { ttl: self.wanted.ttl, fencing_token, permits });
        let (acquisition, turn) = turn.shared();
        self.shared().stays.begin(*acquisition.token(), turn, page);
    }

    /// Records the acquisition of a shared token or a view for a test, and its later events.
    #[cfg(feature = "testing")]
    pub(super) fn note_view(&self, view: &ReentrantEntry) {
        let Some(page) = self.page() else { return };
        let acquired = crate::stats::LogEvent::Acquired { ttl: self.wanted.ttl, fencing_token: None, permits: None };
        page.note(if view.tenure().is_view() { crate::stats::LogEvent::Entered {} } else { acquired });
        view.tenure().note_in(page);
    }

    /// Runs the acquisition in a span, and logs a long wait and the outcome.
    pub(super) async fn in_span(
        &self,
        run: impl Future<Output = Result<AcquiredLock, LockError>>,
    ) -> Result<AcquiredLock, LockError> {
        // The span of the held lock is a sibling of this one. As a child, it would keep this span open.
        self.way.set_outer_span(Span::current().id());
        let span = spans::acquire(self.named(), self.wanted.ttl);
        async {
            let mut run = pin!(run);
            let outcome = if let Ok(outcome) = timeout(WAITING_AFTER, &mut run).await {
                outcome
            } else {
                events::waiting(self.named(), self.waited());
                run.await
            };
            let path = self.way.path();
            spans::acquired(&span, self.outcome_name(&outcome), path, self.way.rank());
            match &outcome {
                Ok(obtained) => events::acquired(self.named(), obtained.acquisition().token(), path, self.waited()),
                Err(_) => self.log_failure(&outcome),
            }
            outcome
        }
        .instrument(span.clone())
        .await
    }

    /// Counts the acquisition, which ends at `now`.
    pub(super) fn count_as_acquired(&self, now: Instant) {
        self.site.counters.acquired(now.nanos_since(self.begun));
    }

    /// Returns the span of the held lock, if such spans are enabled.
    pub(super) fn hold_span(&self, acquisition: &Acquisition, number: Option<FencingToken>) -> Option<Span> {
        let (token, number) = (acquisition.token(), number.map(FencingToken::as_u64));
        let span = || spans::hold(self.way.outer(), self.named(), token, number);
        spans::spans_enabled().then(span).filter(|span| !span.is_disabled())
    }

    fn waited(&self) -> Duration {
        self.now().since(self.begun)
    }

    /// Returns the name of the lock in spans and events.
    fn named(&self) -> Named<'_> {
        named(self.shared(), (&self.key, self.mode), Some(self.place), self.label)
    }

    const fn is_of_window(&self) -> bool {
        self.hold.window_rest.is_some()
    }

    /// Logs the failure of the call, if it has failed.
    pub(super) fn log_failure(&self, outcome: &Result<AcquiredLock, LockError>) {
        match outcome {
            Ok(_) => {}
            // The caller of the window logs this outcome.
            Err(error) if self.is_of_window() && failure(error, true) == Failure::Contended => {}
            Err(LockError::Contended { .. } | LockError::TooManyWaiting { .. }) => events::skipped(self.named()),
            Err(LockError::TimedOut { waited, .. }) => events::timed_out(self.named(), *waited),
            Err(error) => log_no_quorum(self.shared(), self.named(), error),
        }
    }

    /// Returns the name of the outcome in spans.
    fn outcome_name(&self, outcome: &Result<AcquiredLock, LockError>) -> &'static str {
        outcome.as_ref().map_or_else(|error| failure(error, self.is_of_window()).name(), |_| "acquired")
    }
}
