//! Background task for the releases of one node: it takes answers that no caller waits for, and repeats unacknowledged
//! releases.

use super::pending_release::PendingRelease;
use super::release_ledger::ReleaseLedger;
use crate::node::Node;
use crate::time::clock::Clock;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Pause before a release is repeated for the first time. Smaller: a broken connection is not detected yet. Larger: the
/// next owner waits for longer.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// Longest pause; the pauses double up to it. Smaller: a busy loop against a busy server. Larger: the key stays taken
/// for longer after the server has recovered.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct Collector {
    node: Arc<dyn Node>,
    clock: Clock,
    ledger: Arc<ReleaseLedger>,
    queue: mpsc::UnboundedReceiver<PendingRelease>,
    /// Releases that were taken from the queue, in the order of sending.
    waiting: VecDeque<PendingRelease>,
}

impl Collector {
    pub(crate) fn new(
        node: Arc<dyn Node>,
        clock: Clock,
        ledger: Arc<ReleaseLedger>,
        queue: mpsc::UnboundedReceiver<PendingRelease>,
    ) -> Self {
        Self { node, clock, ledger, queue, waiting: VecDeque::new() }
    }

    /// Runs until the manager and its last guard are dropped, and everything is answered.
    pub(crate) async fn run(mut self) {
        while let Some(release) = self.next().await {
            if self.ledger.has_parts {
                // A missing answer of one part must not delay the others.
                tokio::spawn(self.of_one().follow_up_alone(release));
            } else {
                self.follow_up(release).await;
            }
        }
    }

    /// Creates a collector for one release that is completed separately.
    fn of_one(&self) -> Self {
        let (_, none) = mpsc::unbounded_channel();
        Self::new(Arc::clone(&self.node), self.clock, Arc::clone(&self.ledger), none)
    }

    async fn follow_up_alone(mut self, release: PendingRelease) {
        self.follow_up(release).await;
    }

    /// Returns the oldest release that is not settled.
    async fn next(&mut self) -> Option<PendingRelease> {
        match self.waiting.pop_front() {
            Some(release) => Some(release),
            None => self.queue.recv().await,
        }
    }

    /// Waits for the answer, and repeats `release` until it is answered or the key has expired.
    async fn follow_up(&mut self, mut release: PendingRelease) {
        let mut pause = FIRST_PAUSE;
        loop {
            release.ledger().waits();
            let answer = (&mut release.answer).await;
            release.ledger().record_collector_answer();
            if release.send_follow_up(&answer, &*self.node) {
                continue;
            }
            let left = release.matters_until().since(self.clock.now());
            if release.is_settled_by(&answer) || left.is_zero() {
                return release.settle(&answer);
            }
            // Time to detect a broken connection, and for a busy server to recover.
            let later = async {
                sleep(pause).await;
                self.node.wait_until_up(release.key()).await;
            };
            if timeout(left, later).await.is_err() {
                return release.settle(&answer);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            release.send_again(&*self.node, self.clock.now());
            self.repeat_the_others();
        }
    }

    /// Repeats the releases behind a failed one at once, because they probably failed with it; otherwise, each would
    /// cost a round trip.
    fn repeat_the_others(&mut self) {
        while let Ok(release) = self.queue.try_recv() {
            self.waiting.push_back(release);
        }
        for release in &mut self.waiting {
            if release.take_unsettled_answer() {
                release.send_again(&*self.node, self.clock.now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::hooked_node::{Fate, HookedNode};
    use crate::client::node_handle::NodeHandle;
    use crate::lock::OwnerToken;
    use crate::lock::owner_token::ManagerId;
    use crate::protocol::command::Subject;
    use crate::protocol::last_command::LastCommand;
    use crate::time::token_clock::TokenTime;
    use tokio::runtime::Handle;

    /// One part answers nothing, and a connection of another part breaks with a release on it.
    #[tokio::test(start_paused = true)]
    async fn silent_shard_does_not_delay_releases_at_another_shard() {
        let (clock, (sent, mut sends)) = (Clock::tokio(), mpsc::unbounded_channel());
        let node = HookedNode::new(clock, move |command| {
            if command.key() == "silent" {
                return Fate::Unanswered;
            }
            sent.send(()).unwrap();
            Fate::CutOff
        });
        node.divide();
        let handle = NodeHandle::in_background(node, clock, &Handle::current());
        for (time, key) in [(1, "silent"), (2, "cut off")] {
            let token = OwnerToken::new(ManagerId::numbered(7), TokenTime::new(time, 0));
            let last = LastCommand::for_unknown_token(clock.now());
            let release = handle.release(Arc::new(Subject::new(key.into(), token)), last);
            handle.follow_up(release);
        }
        for _ in 0..2 {
            timeout(LONGEST_PAUSE, sends.recv()).await.expect("it is sent again").unwrap();
        }
    }
}
