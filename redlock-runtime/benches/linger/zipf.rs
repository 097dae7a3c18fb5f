//! Two processes with separate sets of keys. Some keys are used much more often than others, and a few calls use a key
//! of the other process.

use crate::{Extent, LINGERING, Row, SIDES, in_turn, manager, mean};
use redlock_runtime::admin::LingerStats;
use redlock_runtime::{LockManager, LockRequest, Wait};
use redlock_tests::Nodes;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Number of keys of each process.
const KEYS: usize = 1000;
/// Number of concurrent calls of each process.
const TASKS: usize = 4;

/// Returns the mean time of a pair. `foreign` is the percentage of calls for a key of the other process.
pub(crate) async fn measure(nodes: &Nodes, extent: Extent, foreign: u8, limit: f64) -> Row {
    let mut pairs = [const { Vec::new() }; SIDES.len()];
    let mut stats = LingerStats::default();
    for turn in 0..extent.turns {
        for side in in_turn(turn) {
            // Use new managers in each turn, because a manager remembers keys that other processes have used.
            let processes = [manager(nodes, SIDES[side]).await, manager(nodes, SIDES[side]).await];
            let run = format!("zipf:{foreign}:{turn}:{side}");
            pairs[side].extend(calls(&processes, &run, extent.time, foreign).await);
            for process in processes {
                stats = if side == LINGERING { process.stats().linger } else { stats };
                process.shutdown().await;
            }
        }
    }
    let what = format!("Zipf keys of two processes, {foreign} % foreign calls, {} nodes, mean", nodes.len());
    let note = format!("started {}, reclaimed {}", stats.started, stats.reclaimed);
    Row { what, pairs: pairs.map(|pairs| mean(&pairs)), note, limit }
}

async fn calls(processes: &[LockManager; 2], run: &str, time: Duration, foreign: u8) -> Vec<Duration> {
    let (end, mut tasks) = (Instant::now() + time, JoinSet::new());
    for (process, manager) in processes.iter().enumerate() {
        for task in 0..TASKS {
            let (manager, run) = (manager.clone(), run.to_owned());
            let mut random = fastrand::Rng::with_seed((process * TASKS + task) as u64);
            tasks.spawn(async move {
                let mut pairs = Vec::new();
                while Instant::now() < end {
                    let owner = if random.u8(0..100) < foreign { 1 - process } else { process };
                    let request = LockRequest::new(format!("{run}:{owner}:{}", zipf(&mut random))).wait(Wait::Forever);
                    let begun = Instant::now();
                    drop(manager.acquire(request).await.expect("the nodes are up"));
                    pairs.push(begun.elapsed());
                }
                pairs
            });
        }
    }
    tasks.join_all().await.concat()
}

/// Returns a random key. Key `k` has a probability of about 1 / k, because the logarithm of its number is distributed
/// uniformly.
fn zipf(random: &mut fastrand::Rng) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let keys = KEYS as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and the number of keys")]
    let key = keys.powf(random.f64()) as u64;
    key
}
