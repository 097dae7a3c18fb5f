//! Takes the answers to the releases of one node that nobody else takes, and sends again what was swallowed.

use super::{Ledger, Unanswered, settles};
use crate::node::{Node, Pending};
use crate::time::clock::Clock;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Collector {
    node: Arc<dyn Node>,
    clock: Clock,
    ledger: Arc<Ledger>,
    queue: mpsc::UnboundedReceiver<Unanswered>,
    /// Taken out of the queue already, in the order of the sends.
    waiting: VecDeque<Unanswered>,
}

impl Collector {
    pub(super) fn new(
        node: Arc<dyn Node>,
        clock: Clock,
        ledger: Arc<Ledger>,
        queue: mpsc::UnboundedReceiver<Unanswered>,
    ) -> Self {
        Self { node, clock, ledger, queue, waiting: VecDeque::new() }
    }

    /// Runs until the manager and its last guard are gone, and everything is answered.
    pub(super) async fn run(mut self) {
        while let Some(release) = self.next().await {
            self.see_through(release).await;
        }
    }

    async fn next(&mut self) -> Option<Unanswered> {
        match self.waiting.pop_front() {
            Some(release) => Some(release),
            None => self.queue.recv().await,
        }
    }

    /// Waits for the answer, and sends `release` again until there is one or the key has expired.
    async fn see_through(&mut self, mut release: Unanswered) {
        let mut pause = FIRST_PAUSE;
        loop {
            self.ledger.waits();
            let answer = (&mut release.answer).await;
            self.ledger.waits_no_more();
            if release.leaves_after(&answer, &*self.node) {
                continue;
            }
            let left = release.matters_until.since(self.clock.now());
            if settles(&answer) || left.is_zero() {
                return release.settle(&answer);
            }
            // Time for the connection to be seen as broken, and for a busy server to get on.
            let later = async {
                sleep(pause).await;
                self.node.up_for(release.key()).await;
            };
            if timeout(left, later).await.is_err() {
                return release.settle(&answer);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            release.send_again(&*self.node, self.clock.now());
            self.repeat_the_others();
        }
    }

    /// What befell one release befell those behind it: sends them again at once, not one per round trip.
    fn repeat_the_others(&mut self) {
        while let Ok(release) = self.queue.try_recv() {
            self.waiting.push_back(release);
        }
        for release in &mut self.waiting {
            if let Some(answer) = release.answer.try_answer() {
                if settles(&answer) {
                    release.answer = Pending::answered(answer);
                } else {
                    release.send_again(&*self.node, self.clock.now());
                }
            }
        }
    }
}
