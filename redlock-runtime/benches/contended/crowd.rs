//! Tasks that each take the same lock once and increment a counter under it.

use crate::contender::{Contender, TTL};
use crate::counter::Counter;
use crate::plan::LIMIT;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Tasks under way.
pub(crate) struct Crowd {
    tasks: JoinSet<Option<Instant>>,
    counter: Arc<Counter>,
}

/// What they did within [`LIMIT`].
pub(crate) struct Outcome {
    /// When each body began.
    pub(crate) begun: Vec<Instant>,
    /// Whether all tasks had their turn.
    pub(crate) is_complete: bool,
    /// See [`Counter::lost`].
    pub(crate) lost: u64,
}

impl Crowd {
    /// Starts `size` tasks, which share the contenders evenly.
    pub(crate) fn start(contenders: &[Contender], size: usize, key: &str) -> Self {
        let (mut tasks, counter) = (JoinSet::new(), Arc::<Counter>::default());
        for contender in contenders.iter().cycle().take(size) {
            tasks.spawn(once(contender.clone(), key.to_owned(), Arc::clone(&counter)));
        }
        Self { tasks, counter }
    }

    /// Waits for all tasks; those that need too long are cancelled.
    pub(crate) async fn finish(mut self) -> Outcome {
        let (size, mut begun) = (self.tasks.len(), Vec::new());
        let all = async {
            while let Some(task) = self.tasks.join_next().await {
                begun.extend(task.expect("no panic"));
            }
        };
        // What is missing then shows in the number of bodies.
        let _ = timeout(LIMIT, all).await;
        Outcome { is_complete: begun.len() == size, begun, lost: self.counter.lost() }
    }
}

/// When the body began; `None` if the library gave up.
async fn once(contender: Contender, key: String, counter: Arc<Counter>) -> Option<Instant> {
    let held = contender.acquire(&key, TTL).await?;
    let begun = Instant::now();
    counter.increment(Duration::ZERO).await;
    held.release().await;
    Some(begun)
}
