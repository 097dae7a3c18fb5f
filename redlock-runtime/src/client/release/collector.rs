//! Takes the answers to the releases of one node that nobody else takes, and sends again what was swallowed.

use super::pending_release::PendingRelease;
use super::release_ledger::ReleaseLedger;
use crate::node::Node;
use crate::protocol::last_command::is_conclusive;
use crate::time::clock::Clock;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Before a release is sent again the first time. Smaller, a broken connection is not seen as broken yet; larger, the next
/// owner waits for longer.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The pauses double up to this. Smaller, a hot loop against a busy server; larger, a server that is well again keeps the
/// key for longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct Collector {
    node: Node,
    clock: Clock,
    ledger: Arc<ReleaseLedger>,
    queue: mpsc::UnboundedReceiver<PendingRelease>,
    /// Taken out of the queue already, in the order of the sends.
    waiting: VecDeque<PendingRelease>,
}

impl Collector {
    pub(crate) fn new(
        node: Node,
        clock: Clock,
        ledger: Arc<ReleaseLedger>,
        queue: mpsc::UnboundedReceiver<PendingRelease>,
    ) -> Self {
        Self { node, clock, ledger, queue, waiting: VecDeque::new() }
    }

    /// Runs until the manager and its last guard are gone, and everything is answered.
    pub(crate) async fn run(mut self) {
        while let Some(release) = self.next().await {
            self.follow_up(release).await;
        }
    }

    /// The release that was sent first of those that are not settled.
    async fn next(&mut self) -> Option<PendingRelease> {
        match self.waiting.pop_front() {
            Some(release) => Some(release),
            None => self.queue.recv().await,
        }
    }

    /// Waits for the answer, and sends `release` again until there is one or the key has expired.
    async fn follow_up(&mut self, mut release: PendingRelease) {
        let mut pause = FIRST_PAUSE;
        loop {
            self.ledger.waits();
            let answer = (&mut release.answer).await;
            self.ledger.waits_no_more();
            if release.leaves_queue_after(&answer, &self.node) {
                continue;
            }
            let left = release.matters_until().since(self.clock.now());
            if is_conclusive(&answer) || left.is_zero() {
                return release.settle(&answer);
            }
            // Time for the connection to be seen as broken, and for a busy server to get on.
            let later = async {
                sleep(pause).await;
                self.node.up().await;
            };
            if timeout(left, later).await.is_err() {
                return release.settle(&answer);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            release.send_again(&self.node, self.clock.now());
            self.repeat_the_others();
        }
    }

    /// What befell one release befell those behind it: sends them again at once, not one per round trip.
    fn repeat_the_others(&mut self) {
        while let Ok(release) = self.queue.try_recv() {
            self.waiting.push_back(release);
        }
        for release in &mut self.waiting {
            if release.is_open_by_now() {
                release.send_again(&self.node, self.clock.now());
            }
        }
    }
}
