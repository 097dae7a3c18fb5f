//! The way of a call to its lock, and the lock as it is called in what is told.

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

/// For so long, calls that have failed without a quorum are counted and not told. Smaller, and a service whose servers are gone
/// writes nothing else to its log; larger, and it is known later.
const QUIET: Duration = Duration::from_secs(1);

/// How a call comes to its lock, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Way {
    path: AtomicU8,
    /// How many calls of the process stood before it in the line, and one more; zero when it did not stand there.
    rank: AtomicU32,
    /// In which span the call was made, if in any.
    outer: OnceLock<Id>,
}

impl Way {
    pub(super) fn goes(&self, path: Path) {
        self.path.store(path as u8, Ordering::Relaxed);
    }

    pub(super) fn stands_behind(&self, others: usize) {
        self.rank.store(u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1), Ordering::Relaxed);
    }

    /// The call was made in the span `outer`.
    pub(super) fn is_within(&self, outer: Option<Id>) {
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

/// A lock as it is called in what is told.
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

/// Tells that too few nodes agreed, if that is what `error` says, and unless it was told just now.
pub(crate) fn tell_no_quorum(shared: &Shared, lock: Named<'_>, error: &LockError) {
    let (LockError::NoQuorum { causes, .. } | LockError::Refused { causes, .. }) = error else { return };
    if let Some(times) = shared.without_quorum.times(shared.clock.now(), QUIET) {
        let causes: Vec<_> = causes.iter().map(ToString::to_string).collect();
        events::no_quorum(lock, causes.join("; "), times);
    }
}
