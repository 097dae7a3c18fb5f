//! What is told of a call on its way to its lock, and that it is counted.

use super::asked::{Asked, failure};
use super::way::{named, tell_no_quorum};
use super::{Call, Obtained};
use crate::client::acquisition::Acquisition;
#[cfg(feature = "testing")]
use crate::client::enclosing::View;
#[cfg(feature = "testing")]
use crate::client::local_queue::LocalTurn;
use crate::client::timers::timeout;
use crate::error::LockError;
use crate::observe::{Named, events, spans};
use crate::protocol::fencing_token::FencingToken;
use crate::stats::Failure;
use crate::time::clock::Instant;
use std::pin::pin;
use std::time::Duration;
use tracing::{Instrument, Span};

/// A call that has waited for so long is told of. Smaller, and ordinary hand-overs are; larger, and whoever looks for a lock
/// that is waited for sees less.
const WAITING_AFTER: Duration = Duration::from_millis(100);

impl Call<'_> {
    /// It has its lock, which is counted, or an error. Counts what nobody has before.
    pub(super) fn is_answered(&self, mut asked: Asked<'_>, outcome: &Result<Obtained, LockError>) {
        match outcome {
            Ok(_) => asked.is_answered = true,
            Err(error) => {
                asked.failed(failure(error, self.is_of_window()));
                #[cfg(feature = "testing")]
                self.note(&crate::stats::LogEvent::Failed { error: error.clone() });
            }
        }
    }

    /// Notes what became of the call, where a test wants to read it.
    #[cfg(feature = "testing")]
    fn note(&self, event: &crate::stats::LogEvent) {
        self.page().into_iter().for_each(|page| page.note(event.clone()));
    }

    #[cfg(feature = "testing")]
    fn page(&self) -> Option<crate::stats::Page> {
        let (notebook, template) = (self.shared().notebook.clone()?, self.site.template());
        Some(crate::stats::Page { notebook, parts: self.parts.clone(), mode: self.mode, template })
    }

    /// Notes that the call has its lock, where a test wants to read it.
    #[cfg(feature = "testing")]
    pub(super) fn note_stay(&self, turn: &LocalTurn, fencing_token: Option<FencingToken>) {
        let Some(page) = self.page() else { return };
        let permits = self.mode.is_permit().then_some(self.permits);
        page.note(crate::stats::LogEvent::Acquired { ttl: self.wanted.ttl, fencing_token, permits });
        let (acquisition, turn) = turn.shared();
        self.shared().stays.begin(*acquisition.token(), turn, page);
    }

    /// Notes that the call has its lock together with others of the process, or by its caller, and from then on what becomes of it.
    #[cfg(feature = "testing")]
    pub(super) fn note_view(&self, view: &View) {
        let Some(page) = self.page() else { return };
        let acquired = crate::stats::LogEvent::Acquired { ttl: self.wanted.ttl, fencing_token: None, permits: None };
        page.note(if view.tenure().is_view() { crate::stats::LogEvent::Entered {} } else { acquired });
        view.tenure().note_in(page);
    }

    /// Runs in a span, and tells when that takes a while and when it is over.
    pub(super) async fn in_span(
        &self,
        run: impl Future<Output = Result<Obtained, LockError>>,
    ) -> Result<Obtained, LockError> {
        // The span of the lock is beside this one, and not in it: it would keep this one open.
        self.way.is_within(Span::current().id());
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
                Err(_) => self.tell_failure(&outcome),
            }
            outcome
        }
        .instrument(span.clone())
        .await
    }

    /// The call has its lock from `now` on.
    pub(super) fn count_as_acquired(&self, now: Instant) {
        self.site.counters.acquired(now.nanos_since(self.begun));
    }

    /// The span of the call while it has the lock, if anybody wants to see it.
    pub(super) fn hold_span(&self, acquisition: &Acquisition, number: Option<FencingToken>) -> Option<Span> {
        let (token, number) = (acquisition.token(), number.map(FencingToken::as_u64));
        let span = || spans::hold(self.way.outer(), self.named(), token, number);
        spans::are_wanted().then(span).filter(|span| !span.is_disabled())
    }

    fn waited(&self) -> Duration {
        self.now().since(self.begun)
    }

    /// The lock as it is called in what is told.
    fn named(&self) -> Named<'_> {
        named(self.shared(), (&self.key, self.mode), Some(self.place), self.label)
    }

    const fn is_of_window(&self) -> bool {
        self.hold.window_rest.is_some()
    }

    /// Tells why the call has no lock, if so.
    pub(super) fn tell_failure(&self, outcome: &Result<Obtained, LockError>) {
        match outcome {
            Ok(_) => {}
            // Whoever has asked for the window tells what has become of it.
            Err(error) if self.is_of_window() && failure(error, true) == Failure::Contended => {}
            Err(LockError::Contended { .. } | LockError::TooManyWaiting { .. }) => events::skipped(self.named()),
            Err(LockError::TimedOut { waited, .. }) => events::timed_out(self.named(), *waited),
            Err(error) => tell_no_quorum(self.shared(), self.named(), error),
        }
    }

    /// What is told of how the call has ended.
    fn outcome_name(&self, outcome: &Result<Obtained, LockError>) -> &'static str {
        outcome.as_ref().map_or_else(|error| failure(error, self.is_of_window()).name(), |_| "acquired")
    }
}
