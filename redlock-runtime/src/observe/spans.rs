//! Spans of a call that acquires a lock, and of a held lock.

use super::{Named, TARGET, millis, shielded};
use crate::lock::OwnerToken;
use std::sync::Arc;
use std::time::Duration;
use tracing::field::Empty;
use tracing::span::Id;
use tracing::{Level, Span};

/// Path by which a call acquired its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Path {
    /// Not acquired yet.
    None,
    /// Handed over by another call of this process, without a command.
    Local,
    /// One attempt at all nodes.
    Fast,
    /// Queues of the nodes.
    Queued,
    /// Lock of the enclosing call.
    Nested,
    /// Taken over from another worker, which detached it.
    Attached,
}

impl Path {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Local => "local",
            Self::Fast => "fast",
            Self::Queued => "queued",
            Self::Nested => "nested",
            Self::Attached => "attached",
        }
    }
}

/// Returns `true` if a subscriber records spans. Without a subscriber, this is a load and a comparison.
pub(crate) fn spans_enabled() -> bool {
    tracing::span_enabled!(target: TARGET, Level::DEBUG)
}

/// Returns `true` if a subscriber records the outcome of each call, by spans or by events. Without a subscriber, this is a load and
/// a comparison.
pub(crate) fn calls_enabled() -> bool {
    spans_enabled() || tracing::event_enabled!(target: TARGET, Level::DEBUG)
}

/// Opens the span of a call that acquires a lock.
pub(crate) fn acquire(lock: Named<'_>, ttl: Duration) -> Span {
    tracing::span!(
        target: TARGET,
        Level::DEBUG,
        "redlock.acquire",
        key = %lock.key(),
        template = lock.template,
        site = %lock.site(),
        mode = lock.mode(),
        ttl_ms = millis(ttl),
        outcome = Empty,
        path = Empty,
        rank = Empty,
    )
}

/// Records the outcome of an acquisition.
pub(crate) fn acquired(span: &Span, outcome: &'static str, path: Path, rank: Option<u64>) {
    shielded(|| {
        span.record("outcome", outcome).record("path", path.name());
        if let Some(rank) = rank {
            span.record("rank", rank);
        }
    });
}

/// Opens the span of a held lock. `outer` is the span in which the call was made.
pub(crate) fn hold(outer: Option<Id>, lock: Named<'_>, token: &OwnerToken, fencing_token: Option<u64>) -> Span {
    tracing::span!(
        target: TARGET,
        parent: outer,
        Level::DEBUG,
        "redlock.hold",
        key = %lock.key(),
        template = lock.template,
        site = %lock.site(),
        mode = lock.mode(),
        token = %token,
        fencing_token,
        outcome = Empty,
    )
}

/// Records the end of a held lock.
pub(crate) fn ended(span: &Span, outcome: &'static str) {
    shielded(|| {
        span.record("outcome", outcome);
    });
}

/// Drops a reference to a span. The last reference closes it.
pub(crate) fn close(span: Arc<Span>) {
    shielded(|| drop(span));
}

/// Enters `span` on this thread, until [`leave`]. Used by values that cannot keep the guard of a span, because they may move to
/// another thread in between.
pub(crate) fn enter(span: &Span) {
    shielded(|| span.with_subscriber(|(id, subscriber)| subscriber.enter(id)));
}

/// Leaves a span that [`enter`] has entered.
pub(crate) fn leave(span: &Span) {
    shielded(|| span.with_subscriber(|(id, subscriber)| subscriber.exit(id)));
}
