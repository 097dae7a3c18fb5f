//! Two processes use the same key in turns: what lingering is not for.

use crate::{Extent, LINGER, Row, manager, mean};
use redlock_runtime::LockManager;
use redlock_tests::Nodes;
use std::time::{Duration, Instant};
use tokio::time::sleep;

const TO_REACH: f64 = 1.05;
/// Of long pauses, few turns make many pairs.
const LONG_PAUSE: Duration = Duration::from_millis(100);
const FEW_TURNS: usize = 2;

/// The mean of a pair, with `pause` before each.
pub(crate) async fn measure(nodes: &Nodes, extent: Extent, pause: Duration) -> Row {
    let sides =
        [Duration::ZERO, LINGER].map(async |linger| [manager(nodes, linger).await, manager(nodes, linger).await]);
    let [plain, lingering] = sides;
    let (plain, lingering) = (plain.await, lingering.await);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let turns = if pause < LONG_PAUSE { extent.turns } else { extent.turns.min(FEW_TURNS) };
    let keys = ["plain", "lingering"].map(|side| format!("ping-pong:{pause:?}:{side}"));
    for _ in 0..turns {
        before.extend(pairs(&plain, &keys[0], extent, pause).await);
        after.extend(pairs(&lingering, &keys[1], extent, pause).await);
    }
    let stats = lingering[0].stats().linger;
    let what = format!("two processes in turns, {pause:?} between, {} nodes, mean", nodes.len());
    let note = format!("kept {}, recalled {}", stats.kept, stats.recalled);
    Row { what, before: mean(&before), after: mean(&after), note, limit: TO_REACH }
}

async fn pairs(processes: &[LockManager; 2], key: &str, extent: Extent, pause: Duration) -> Vec<Duration> {
    let (end, mut pairs) = (Instant::now() + extent.time, Vec::new());
    while Instant::now() < end || pairs.len() < extent.least {
        for process in processes {
            sleep(pause).await;
            let begun = Instant::now();
            drop(process.acquire(key).await.expect("the nodes are up"));
            pairs.push(begun.elapsed());
        }
    }
    pairs
}
