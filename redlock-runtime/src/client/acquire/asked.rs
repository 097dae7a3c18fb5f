//! A call as it is counted: that it has asked, and what has become of it.

use crate::client::shared::Shared;
use crate::error::LockError;
use crate::request::Place;
use crate::request::acquire_request::AcquireRequest;
use crate::stats::{Failure, Known};
use crate::time::clock::Instant;

/// A call that has asked for its lock, and counts as dropped until it is answered.
pub(crate) struct Asked<'c> {
    site: &'c Known,
    /// A lock that the call has later than this is of no use.
    pub(crate) latest: Option<Instant>,
    pub(super) is_answered: bool,
    /// Where a test wants to read what became of the call.
    #[cfg(feature = "testing")]
    noted: Option<Box<crate::stats::Page>>,
}

impl<'c> Asked<'c> {
    /// A call asks for its lock.
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

    /// Notes what has become of the call before it was known what exactly it asks for.
    #[cfg(feature = "testing")]
    fn note(&self, event: &crate::stats::LogEvent) {
        self.noted.iter().for_each(|page| page.note(event.clone()));
    }

    pub(super) const fn site(&self) -> &'c Known {
        self.site
    }

    /// It gets none.
    ///
    /// # Errors
    /// The one that it is answered with.
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

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.site.counters.failed(Failure::Cancelled);
            #[cfg(feature = "testing")]
            self.note(&crate::stats::LogEvent::Cancelled {});
        }
    }
}

/// Where what becomes of a call is noted as long as it is only known what was asked for; `None` for what has no name.
#[cfg(feature = "testing")]
fn page(
    notebook: &crate::stats::Notebook,
    shared: &Shared,
    request: &AcquireRequest,
    site: &Known,
) -> Option<crate::stats::Page> {
    let parts = match request.key() {
        Some(key) => crate::lock::parts::Parts::single(key.clone().below(&shared.namespace), request.mode),
        None => request.parts(&shared.namespace).ok()?,
    };
    let mode = request.mode_of(&parts);
    Some(crate::stats::Page { notebook: notebook.clone(), parts, mode, template: site.template() })
}

/// What an error counts as, of a call that may be one for a window.
pub(super) fn failure(error: &LockError, is_of_window: bool) -> Failure {
    match error {
        // Who has the window is at work, or was: that is what the call wanted to know.
        error if is_of_window && is_taken(error) => Failure::Contended,
        LockError::Contended { .. } | LockError::TooManyWaiting { .. } | LockError::WindowTaken { .. } => {
            Failure::Contended
        }
        LockError::TimedOut { .. } => Failure::TimedOut,
        LockError::NoQuorum { .. } => Failure::NoQuorum,
        _ => Failure::Refused,
    }
}

/// Whether the window that a call has asked for is another one's, by an error about the lock of that.
pub(crate) fn is_taken(error: &LockError) -> bool {
    match error {
        // A caller of the call has the window: it is at work, and the call has nothing to wait for.
        LockError::WouldDeadlock { held, .. } => !held.is_about_order(),
        error => error.is_contended(),
    }
}
