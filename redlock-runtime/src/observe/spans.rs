//! The two spans: a call on its way to its lock, and a lock that is held.

use super::{Named, TARGET, millis, shielded};
use crate::lock::OwnerToken;
use std::sync::Arc;
use std::time::Duration;
use tracing::field::Empty;
use tracing::span::Id;
use tracing::{Level, Span};

/// How a call came to its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Path {
    /// It has none yet.
    None,
    /// From another call of the process, without a command.
    Local,
    /// By one try at all nodes.
    Fast,
    /// From the queues of the nodes.
    Queued,
    /// In the lock of a call that encloses it.
    Nested,
    /// From another worker, which has left it at the nodes.
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

/// Whether anybody wants to see spans. Without a subscriber, this is a load and a comparison.
pub(crate) fn are_wanted() -> bool {
    tracing::span_enabled!(target: TARGET, Level::DEBUG)
}

/// Whether anybody wants to be told what becomes of each call, by spans or by events. Without a subscriber, this is a load and a
/// comparison.
pub(crate) fn calls_are_wanted() -> bool {
    are_wanted() || tracing::event_enabled!(target: TARGET, Level::DEBUG)
}

/// A call is on its way to its lock.
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

/// The call has its lock, or has failed.
pub(crate) fn acquired(span: &Span, outcome: &'static str, path: Path, rank: Option<u64>) {
    shielded(|| {
        span.record("outcome", outcome).record("path", path.name());
        if let Some(rank) = rank {
            span.record("rank", rank);
        }
    });
}

/// A lock is held, by a call that was made in the span `outer`.
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

/// The lock is held no more.
pub(crate) fn ended(span: &Span, outcome: &'static str) {
    shielded(|| {
        span.record("outcome", outcome);
    });
}

/// Nobody has the span any more, unless somebody is in it still.
pub(crate) fn close(span: Arc<Span>) {
    shielded(|| drop(span));
}

/// What follows on this thread is inside of `span`, until [`leave`]. For a value that cannot keep a guard of the span,
/// because it may be sent to another thread at other times.
pub(crate) fn enter(span: &Span) {
    shielded(|| span.with_subscriber(|(id, subscriber)| subscriber.enter(id)));
}

/// The end of an [`enter`].
pub(crate) fn leave(span: &Span) {
    shielded(|| span.with_subscriber(|(id, subscriber)| subscriber.exit(id)));
}
