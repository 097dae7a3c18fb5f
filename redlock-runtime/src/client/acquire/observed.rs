//! What is counted of a call on its way to its lock, and what is told of it.

use super::way::{named, tell_no_quorum};
use super::{Call, Obtained};
use crate::client::acquisition::Acquisition;
use crate::error::LockError;
use crate::observe::{Named, events, spans};
use crate::protocol::fencing_token::FencingToken;
use crate::stats::{Failure, SiteCounters};
use crate::time::clock::Instant;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;
use tracing::{Instrument, Span};

/// A call that has waited for so long is told of. Smaller, and ordinary hand-overs are; larger, and whoever looks for a lock
/// that is waited for sees less.
const WAITING_AFTER: Duration = Duration::from_millis(100);

/// A call that has asked for its lock, and counts as dropped until it is answered.
pub(super) struct Asked<'c>(Option<&'c SiteCounters>);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some(counters) = self.0 {
            counters.failed(Failure::Cancelled);
        }
    }
}

impl Call<'_> {
    /// The call asks for its lock.
    pub(super) fn asked(&self) -> Asked<'_> {
        self.site.counters.asked();
        Asked(Some(&self.site.counters))
    }

    /// It has its lock, or an error. Counts and tells what nobody has before.
    pub(super) fn is_answered(&self, mut asked: Asked<'_>, outcome: &Result<Obtained, LockError>) {
        asked.0 = None;
        if let Err(error) = outcome {
            self.site.counters.failed(self.failure(error));
            self.tell_failure(error);
        }
    }

    /// Runs in a span, and tells when that takes a while and when it is over.
    pub(super) async fn in_span(
        &self,
        run: impl Future<Output = Result<Obtained, LockError>>,
    ) -> Result<Obtained, LockError> {
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
            spans::acquired(&span, outcome_name(&outcome), path, self.way.rank());
            if let Ok(obtained) = &outcome {
                events::acquired(self.named(), obtained.acquisition().token(), path, self.waited());
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
        let span = || spans::hold(self.named(), acquisition.token(), number.map(FencingToken::as_u64));
        spans::are_wanted().then(span).filter(|span| !span.is_none())
    }

    fn waited(&self) -> Duration {
        self.now().since(self.begun)
    }

    /// The lock as it is called in what is told.
    fn named(&self) -> Named<'_> {
        named(&self.key, Some(self.place), self.label)
    }

    const fn failure(&self, error: &LockError) -> Failure {
        match error {
            LockError::Contended { .. } | LockError::WindowTaken { .. } => Failure::Contended,
            // Who has the window is at work, or was: that is what the call wanted to know.
            LockError::TimedOut { .. } if self.is_of_window() => Failure::Contended,
            LockError::TimedOut { .. } => Failure::TimedOut,
            LockError::NoQuorum { .. } => Failure::NoQuorum,
            _ => Failure::Refused,
        }
    }

    const fn is_of_window(&self) -> bool {
        self.hold.window_rest.is_some()
    }

    fn tell_failure(&self, error: &LockError) {
        match error {
            // Whoever has asked for the window tells what has become of it.
            LockError::Contended { .. } | LockError::TimedOut { .. } if self.is_of_window() => {}
            LockError::Contended { .. } => events::skipped(self.named()),
            LockError::TimedOut { waited, .. } => events::timed_out(self.named(), *waited),
            error => tell_no_quorum(self.shared(), self.named(), error),
        }
    }
}

/// What is told of how a call has ended.
const fn outcome_name(outcome: &Result<Obtained, LockError>) -> &'static str {
    match outcome {
        Ok(_) => "acquired",
        Err(LockError::Contended { .. } | LockError::WindowTaken { .. }) => "contended",
        Err(LockError::TimedOut { .. }) => "timed_out",
        Err(LockError::NoQuorum { .. }) => "no_quorum",
        Err(_) => "refused",
    }
}
