//! Trace data of one acquisition: its path, and the name of the lock in spans and events.

use crate::client::shared::Shared;
use crate::error::LockError;
use crate::lock::{LockKey, Mode};
use crate::observe::spans::Path;
use crate::observe::{Named, events};
use crate::request::Place;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::Duration;
use tracing::span::Id;

/// Time after a logged lack of quorum for which further failures are counted and not logged. Smaller: a service whose
/// servers are gone logs little else. Larger: failures are logged later.
const QUIET: Duration = Duration::from_secs(1);

/// Progress of a call on the way to its lock.
#[derive(Debug, Default)]
pub(super) struct AcquirePath {
    path: AtomicU8,
    /// Number of local calls ahead of it in the local queue, plus one; zero if it did not wait there.
    rank: AtomicU32,
    /// Span in which the call was made, if any.
    outer: OnceLock<Id>,
}

impl AcquirePath {
    pub(super) fn goes(&self, path: Path) {
        self.path.store(path as u8, Ordering::Relaxed);
    }

    pub(super) fn set_queue_rank(&self, others: usize) {
        self.rank.store(u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1), Ordering::Relaxed);
    }

    /// Records the span in which the call was made.
    pub(super) fn set_outer_span(&self, outer: Option<Id>) {
        if let Some(outer) = outer {
            // Each call is made once.
            let _ = self.outer.set(outer);
        }
    }

    pub(super) fn outer(&self) -> Option<Id> {
        self.outer.get().cloned()
    }

    pub(super) fn path(&self) -> Path {
        let path = self.path.load(Ordering::Relaxed);
        [Path::None, Path::Local, Path::Fast, Path::Queued, Path::Nested, Path::Attached]
            .into_iter()
            .find(|other| *other as u8 == path)
            .unwrap_or(Path::None)
    }

    pub(super) fn rank(&self) -> Option<u64> {
        self.rank.load(Ordering::Relaxed).checked_sub(1).map(u64::from)
    }
}

/// Returns the name of a lock in spans and events.
pub(crate) fn named<'k>(
    shared: &Shared,
    (key, mode): (&'k LockKey, Mode),
    place: Option<Place>,
    label: Option<&'static str>,
) -> Named<'k> {
    let line = place.unwrap_or_else(Place::unknown).line();
    let template = label.or(place.and_then(Place::template));
    Named { key: shared.told(key), template, mode, file: line.file(), line: line.line() }
}

/// Logs a lack of quorum if `error` is one, unless it was logged a moment ago.
pub(crate) fn log_no_quorum(shared: &Shared, lock: Named<'_>, error: &LockError) {
    let (LockError::NoQuorum { causes, .. } | LockError::Refused { causes, .. }) = error else { return };
    if let Some(times) = shared.without_quorum.times(shared.clock.now(), QUIET) {
        let causes: Vec<_> = causes.iter().map(ToString::to_string).collect();
        events::no_quorum(lock, causes.join("; "), times);
    }
}
