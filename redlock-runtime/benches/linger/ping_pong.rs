//! Two processes use the same key in alternation. Lingering is not meant for this pattern.

use crate::{Extent, LINGERING, Row, SIDES, in_turn, manager, mean};
use redlock_runtime::LockManager;
use redlock_runtime::admin::LingerStats;
use redlock_tests::Nodes;
use std::time::{Duration, Instant};
use tokio::time::sleep;

const TO_REACH: f64 = 1.05;
/// Pause from which [`FEW_TURNS`] turns are measured, because each turn takes long.
const LONG_PAUSE: Duration = Duration::from_millis(100);
const FEW_TURNS: usize = 2;
/// Number of rounds before the next side is measured. Short blocks expose all sides to the same background load.
const ROUNDS: usize = 10;

/// Returns the mean time of a pair, with `pause` before each.
pub(crate) async fn measure(nodes: &Nodes, extent: Extent, pause: Duration) -> Row {
    let mut pairs = [const { Vec::new() }; SIDES.len()];
    let mut stats = LingerStats::default();
    for turn in 0..if pause < LONG_PAUSE { extent.turns } else { extent.turns.min(FEW_TURNS) } {
        let more = in_turns(nodes, extent, pause, turn).await;
        stats = more.1;
        for (pairs, more) in pairs.iter_mut().zip(more.0) {
            pairs.extend(more);
        }
    }
    let what = format!("two processes in turns, {pause:?} between, {} nodes, mean", nodes.len());
    let note = format!("started {}, reclaimed {}", stats.started, stats.reclaimed);
    Row { what, pairs: pairs.map(|pairs| mean(&pairs)), note, limit: TO_REACH }
}

/// Measures each side with new connections. Returns the pairs, and the linger statistics of one lingering process.
async fn in_turns(nodes: &Nodes, extent: Extent, pause: Duration, turn: usize) -> ([Vec<Duration>; 3], LingerStats) {
    let mut processes = Vec::new();
    for linger in SIDES {
        processes.push([manager(nodes, linger).await, manager(nodes, linger).await]);
    }
    let mut pairs = [const { Vec::new() }; SIDES.len()];
    let end = Instant::now() + extent.time * 3;
    let mut order = turn;
    while Instant::now() < end || pairs.iter().any(|pairs| pairs.len() < extent.least) {
        for side in in_turn(order) {
            rounds(&processes[side], &format!("ping-pong:{pause:?}:{turn}:{side}"), pause, &mut pairs[side]).await;
        }
        order += 1;
    }
    (pairs, processes[LINGERING][0].stats().linger)
}

async fn rounds(processes: &[LockManager; 2], key: &str, pause: Duration, pairs: &mut Vec<Duration>) {
    for _ in 0..ROUNDS {
        for process in processes {
            sleep(pause).await;
            let begun = Instant::now();
            drop(process.acquire(key).await.expect("the nodes are up"));
            pairs.push(begun.elapsed());
        }
    }
}
