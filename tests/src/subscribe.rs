//! Subscribers of one test.

use std::sync::LazyLock;
use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Dispatch, Subscriber};

/// Makes `subscriber` the subscriber of this thread until the guard is dropped.
///
/// A second, idle subscriber always exists. With a single subscriber, `tracing` would cache if an event is wanted: the answer of the
/// thread that reaches the event first, which may belong to another test, would apply to all threads.
#[must_use]
pub fn subscribe(subscriber: impl Subscriber + Send + Sync + 'static) -> DefaultGuard {
    static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));
    LazyLock::force(&ANOTHER);
    tracing::subscriber::set_default(subscriber)
}
