//! Hand-over from a writer to waiting calls.

use crate::percentile::percentile;
use redlock_runtime::{LockGuard, LockManager, LockRequest, Mode};
use redlock_tests::Nodes;
use std::fmt;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

pub(crate) const READERS: usize = 16;

pub(crate) const KEY: &str = "bench";

/// One row of the table.
pub(crate) struct HandOver {
    nodes: usize,
    to_a_writer: Vec<Duration>,
    to_readers: Vec<Duration>,
}

impl HandOver {
    pub(crate) async fn measure(servers: &Nodes, rounds: usize) -> Self {
        let holder = crate::manager(&servers.urls()).await;
        let mut managers = Vec::new();
        for _ in 0..READERS {
            managers.push(crate::manager(&servers.urls()).await);
        }
        let (mut to_a_writer, mut to_readers) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            // Use another manager in each round, because a manager that has waited recently may acquire the lock
            // sooner.
            let one = managers.get(round % READERS..=round % READERS).expect("there are so many");
            to_a_writer.push(hand_over(servers, &holder, one, Mode::Exclusive).await);
            to_readers.push(hand_over(servers, &holder, &managers, Mode::Shared).await);
        }
        Self { nodes: servers.len(), to_a_writer, to_readers }
    }
}

/// Returns the time from the release by `holder` until one call of each of `managers` holds the lock.
async fn hand_over(servers: &Nodes, holder: &LockManager, managers: &[LockManager], mode: Mode) -> Duration {
    let held = holder.acquire(KEY).await.expect("it is free");
    let mut waiting = JoinSet::new();
    for manager in managers {
        let (manager, request) = (manager.clone(), LockRequest::new(KEY).mode(mode));
        waiting.spawn(async move {
            let guard: LockGuard = manager.acquire(request).await.expect("it is handed over");
            (Instant::now(), guard)
        });
    }
    wait_until_queued(servers, managers.len()).await;
    let begun = Instant::now();
    held.release().await.expect("it is held");
    // All guards are kept until every call holds the lock.
    let all = waiting.join_all().await;
    let last = all.iter().map(|(at, _)| *at).max().expect("there is one at least");
    for (_, guard) in all {
        guard.release().await.expect("it is held");
    }
    last.duration_since(begun)
}

/// Waits until `many` calls are queued at every node.
pub(crate) async fn wait_until_queued(servers: &Nodes, many: usize) {
    for server in servers.iter() {
        let queued = async || server.inspect().command::<usize>(&["ZCOUNT", &format!("{{{KEY}}}:q"), "0", "1"]).await;
        while queued().await < many {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

impl fmt::Display for HandOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, all] = [&self.to_a_writer, &self.to_readers].map(|times| percentile(times, 50));
        let ratio = all.as_secs_f64() / one.as_secs_f64();
        let each = ratio / f64::from(u32::try_from(READERS).expect("they are few"));
        write!(f, "| {} | {one:.1?} | {all:.1?} | {ratio:.2} | {each:.2} |", self.nodes)
    }
}
