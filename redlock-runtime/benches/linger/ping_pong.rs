//! Two processes use the same key in turns: what lingering is not for.

use crate::{Extent, LINGER, Row, manager, mean};
use redlock_runtime::LockManager;
use redlock_tests::Nodes;
use std::time::{Duration, Instant};
use tokio::time::sleep;

const TO_REACH: f64 = 1.05;
/// Each turn has some, however long the pauses are.
const LEAST: usize = 6;

/// The mean of a pair, with `pause` before each.
pub(crate) async fn measure(nodes: &Nodes, extent: Extent, pause: Duration) -> Row {
    let sides =
        [Duration::ZERO, LINGER].map(async |linger| [manager(nodes, linger).await, manager(nodes, linger).await]);
    let [plain, lingering] = sides;
    let (plain, lingering) = (plain.await, lingering.await);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for _ in 0..extent.turns {
        before.extend(pairs(&plain, "ping-pong:plain", extent.time, pause).await);
        after.extend(pairs(&lingering, "ping-pong:lingering", extent.time, pause).await);
    }
    let stats = lingering[0].linger_stats();
    let what = format!("two processes in turns, {pause:?} between, {} nodes, mean", nodes.len());
    let note = format!("kept {}, recalled {}", stats.kept, stats.recalled);
    Row { what, before: mean(&before), after: mean(&after), note, limit: TO_REACH }
}

async fn pairs(processes: &[LockManager; 2], key: &str, time: Duration, pause: Duration) -> Vec<Duration> {
    let (end, mut pairs) = (Instant::now() + time, Vec::new());
    while Instant::now() < end || pairs.len() < LEAST {
        for process in processes {
            sleep(pause).await;
            let begun = Instant::now();
            drop(process.acquire(key).await.expect("the nodes are up"));
            pairs.push(begun.elapsed());
        }
    }
    pairs
}
