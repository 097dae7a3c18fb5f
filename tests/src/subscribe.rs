//! Subscribers of one test.

use std::sync::LazyLock;
use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Dispatch, Subscriber};

/// Has `subscriber` told what this thread does, until the guard is dropped.
///
/// Beside another one, which wants nothing: as long as there is just one, `tracing` asks the subscriber of the thread that comes to an
/// event first whether that is wanted, whichever test that is of, and keeps the answer for all.
#[must_use]
pub fn subscribe(subscriber: impl Subscriber + Send + Sync + 'static) -> DefaultGuard {
    static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));
    LazyLock::force(&ANOTHER);
    tracing::subscriber::set_default(subscriber)
}
