//! Metrics of one acquisition: the attempt, and its outcome.

use crate::client::shared::Shared;
use crate::error::LockError;
use crate::request::Place;
use crate::request::acquire_request::AcquireRequest;
use crate::stats::{Failure, Known};
use crate::time::clock::Instant;

/// Counted call for a lock. It counts as cancelled until its outcome is recorded.
pub(crate) struct AcquireMetrics<'c> {
    site: &'c Known,
    /// Time after which the lock is useless to the call.
    pub(crate) latest: Option<Instant>,
    pub(super) is_answered: bool,
    /// Record in which a test reads the outcome of the call.
    #[cfg(feature = "testing")]
    noted: Option<Box<crate::stats::CallEntry>>,
}

impl<'c> AcquireMetrics<'c> {
    /// Counts a call for a lock.
    pub(crate) fn begin(shared: &'c Shared, request: &AcquireRequest) -> Self {
        let site = shared.sites.at(request.place.unwrap_or_else(Place::unknown), request.label);
        site.counters.asked();
        Self {
            site,
            latest: None,
            is_answered: false,
            #[cfg(feature = "testing")]
            noted: shared.notebook.as_ref().and_then(|notebook| page(notebook, shared, request, site)).map(Box::new),
        }
    }

    /// Records the outcome of a call that failed before its request was complete.
    #[cfg(feature = "testing")]
    fn note(&self, event: &crate::stats::LogEvent) {
        self.noted.iter().for_each(|page| page.note(event.clone()));
    }

    pub(super) const fn site(&self) -> &'c Known {
        self.site
    }

    /// Records that the call failed.
    ///
    /// # Errors
    /// The given error.
    pub(crate) fn refuse<T>(mut self, error: LockError) -> Result<T, LockError> {
        self.failed(failure(&error, false));
        #[cfg(feature = "testing")]
        self.note(&crate::stats::LogEvent::Failed { error: error.clone() });
        Err(error)
    }

    pub(super) fn failed(&mut self, why: Failure) {
        self.is_answered = true;
        self.site.counters.failed(why);
    }
}

impl Drop for AcquireMetrics<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.site.counters.failed(Failure::Cancelled);
            #[cfg(feature = "testing")]
            self.note(&crate::stats::LogEvent::Cancelled {});
        }
    }
}

/// Returns the record of a call whose request is not complete; `None` if the request has no name.
#[cfg(feature = "testing")]
fn page(
    notebook: &crate::stats::CallLog,
    shared: &Shared,
    request: &AcquireRequest,
    site: &Known,
) -> Option<crate::stats::CallEntry> {
    let parts = match request.key() {
        Some(key) => crate::lock::parts::Parts::single(key.clone().below(&shared.namespace), request.mode),
        None => request.parts(&shared.namespace).ok()?,
    };
    let mode = request.mode_of(&parts);
    Some(crate::stats::CallEntry { notebook: notebook.clone(), parts, mode, template: site.template() })
}

/// Returns the metrics category of an error. `is_of_window` is set for a call that may run once per window.
pub(super) fn failure(error: &LockError, is_of_window: bool) -> Failure {
    match error {
        // The job of the window is running or was run, which is the normal outcome of such a call.
        error if is_of_window && is_taken(error) => Failure::Contended,
        LockError::Contended { .. } | LockError::TooManyWaiting { .. } | LockError::WindowTaken { .. } => {
            Failure::Contended
        }
        LockError::TimedOut { .. } => Failure::TimedOut,
        LockError::NoQuorum { .. } => Failure::NoQuorum,
        _ => Failure::Refused,
    }
}

/// Returns `true` if an error about the lock of a window means that another call has the window.
pub(crate) fn is_taken(error: &LockError) -> bool {
    match error {
        // A caller of this call has the window: its job is running, and there is nothing to wait for.
        LockError::WouldDeadlock { held, .. } => !held.is_about_order(),
        error => error.is_contended(),
    }
}
