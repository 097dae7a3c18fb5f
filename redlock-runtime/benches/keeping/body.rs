//! What runs while a lock is held: it says that it has begun, and looks at the clock until it may end.

use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::sleep;

/// How often a body looks at the clock: what a body may have run on unseen.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Ends when `may_end` turns true.
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

    /// Returns when it runs.
    pub(crate) async fn begun(&self) {
        self.ran.subscribe().wait_for(Option::is_some).await.expect("the sender is ours");
    }

    /// Until when it may have run, if the call that ran it returned at `returned`.
    pub(crate) fn ran_until(&self, returned: Instant) -> Instant {
        self.ran.borrow().map_or(returned, |last| returned.min(last + TICK))
    }
}
