//! A group of tasks. Each task acquires the same lock once and increments a counter.

use crate::contender::{Contender, TTL};
use crate::counter::Counter;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Running tasks.
pub(crate) struct Crowd {
    tasks: JoinSet<Option<Instant>>,
    counter: Arc<Counter>,
}

/// Results of the tasks.
pub(crate) struct Outcome {
    /// Start time of each body.
    pub(crate) begun: Vec<Instant>,
    /// `true` if every task acquired the lock.
    pub(crate) is_complete: bool,
    /// See [`Counter::lost`].
    pub(crate) lost: u64,
}

impl Crowd {
    /// Starts `size` tasks, distributed evenly over the contenders.
    pub(crate) fn start(contenders: &[Contender], size: usize, key: &str) -> Self {
        let (mut tasks, counter) = (JoinSet::new(), Arc::<Counter>::default());
        for contender in contenders.iter().cycle().take(size) {
            tasks.spawn(once(contender.clone(), key.to_owned(), Arc::clone(&counter)));
        }
        Self { tasks, counter }
    }

    pub(crate) async fn finish(self) -> Outcome {
        let size = self.tasks.len();
        let begun: Vec<Instant> = self.tasks.join_all().await.into_iter().flatten().collect();
        Outcome { is_complete: begun.len() == size, begun, lost: self.counter.lost() }
    }
}

/// Runs one task. Returns the start time of its body, or `None` if the lock was not acquired.
async fn once(contender: Contender, key: String, counter: Arc<Counter>) -> Option<Instant> {
    let held = contender.acquire(&key, TTL).await?;
    let begun = Instant::now();
    counter.increment(Duration::ZERO).await;
    held.release().await;
    Some(begun)
}
