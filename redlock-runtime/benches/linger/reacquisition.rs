//! One process acquires the same uncontended key repeatedly.

use crate::percentile::percentile;
use crate::{Extent, LINGERING, Row, SIDES, in_turn, manager};
use redlock_runtime::LockManager;
use redlock_tests::Nodes;
use std::time::{Duration, Instant};

const TO_REACH: f64 = 0.05;

/// Returns the median time of a pair, and the number of commands that the pairs send.
pub(crate) async fn measure(nodes: &Nodes, extent: Extent) -> Row {
    let managers = [manager(nodes, SIDES[0]).await, manager(nodes, SIDES[1]).await, manager(nodes, SIDES[2]).await];
    let mut pairs = [const { Vec::new() }; SIDES.len()];
    for turn in 0..extent.turns {
        for side in in_turn(turn) {
            pairs[side].extend(again_and_again(&managers[side], side, extent.time / 10).await);
        }
    }
    let commands = commands(nodes).await;
    let more = again_and_again(&managers[LINGERING], LINGERING, extent.time / 10).await.len();
    let note = format!("{} commands in {more} pairs", self::commands(nodes).await - commands);
    let what = format!("the same key again and again, {} nodes, p50", nodes.len());
    Row { what, pairs: pairs.map(|pairs| percentile(&pairs, 50)), note, limit: TO_REACH }
}

async fn again_and_again(manager: &LockManager, side: usize, time: Duration) -> Vec<Duration> {
    let (end, mut pairs) = (Instant::now() + time, Vec::new());
    let key = format!("bench:{side}");
    loop {
        let begun = Instant::now();
        if begun >= end {
            return pairs;
        }
        drop(manager.acquire(&*key).await.expect("nobody else wants it"));
        pairs.push(begun.elapsed());
    }
}

/// Returns the number of commands that acquire and release locks, on all nodes.
async fn commands(nodes: &Nodes) -> u64 {
    let mut sum = 0;
    for node in nodes.iter() {
        for command in ["set", "evalsha", "eval"] {
            sum += node.inspect().calls(command).await;
        }
    }
    sum
}
