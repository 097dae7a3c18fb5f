//! Body that runs under the lock. It records the time at short intervals until it may end.

use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::sleep;

/// Interval at which a body records the time. The time at which a body ended is known with this precision.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Body that runs until `may_end` is `true`.
#[derive(Clone)]
pub(crate) struct Body {
    ran: Arc<watch::Sender<Option<Instant>>>,
    may_end: watch::Receiver<bool>,
}

impl Body {
    pub(crate) fn new(may_end: watch::Receiver<bool>) -> Self {
        Self { ran: Arc::new(watch::Sender::new(None)), may_end }
    }

    pub(crate) async fn run(&self) {
        while !*self.may_end.borrow() {
            self.ran.send_replace(Some(Instant::now()));
            sleep(TICK).await;
        }
    }

    /// Waits until the body has started.
    pub(crate) async fn begun(&self) {
        self.ran.subscribe().wait_for(Option::is_some).await.expect("the sender is ours");
    }

    /// Returns the latest time at which the body may have run, if its call returned at `returned`.
    pub(crate) fn ran_until(&self, returned: Instant) -> Instant {
        self.ran.borrow().map_or(returned, |last| returned.min(last + TICK))
    }
}
