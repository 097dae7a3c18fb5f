//! The same process comes back to the same key, and nobody else wants it.

use crate::percentile::percentile;
use crate::{Extent, LINGER, Row, manager};
use redlock_runtime::LockManager;
use redlock_tests::Nodes;
use std::time::{Duration, Instant};

const TO_REACH: f64 = 0.05;

/// The median of a pair, and the commands that it takes.
pub(crate) async fn measure(nodes: &Nodes, extent: Extent) -> Row {
    let (plain, lingering) = (manager(nodes, Duration::ZERO).await, manager(nodes, LINGER).await);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for _ in 0..extent.turns {
        before.extend(pairs(&plain, "bench:plain", extent.time / 10).await);
        after.extend(pairs(&lingering, "bench:lingering", extent.time / 10).await);
    }
    let commands = commands(nodes).await;
    let more = pairs(&lingering, "bench:lingering", extent.time / 10).await.len();
    let note = format!("{} commands in {more} pairs", self::commands(nodes).await - commands);
    let what = format!("the same key again and again, {} nodes, p50", nodes.len());
    Row { what, before: percentile(&before, 50), after: percentile(&after, 50), note, limit: TO_REACH }
}

async fn pairs(manager: &LockManager, key: &str, time: Duration) -> Vec<Duration> {
    let (end, mut pairs) = (Instant::now() + time, Vec::new());
    loop {
        let begun = Instant::now();
        if begun >= end {
            return pairs;
        }
        drop(manager.acquire(key).await.expect("nobody else wants it"));
        pairs.push(begun.elapsed());
    }
}

/// Those that locks are taken and given back with.
async fn commands(nodes: &Nodes) -> u64 {
    let mut sum = 0;
    for node in nodes.iter() {
        for command in ["set", "evalsha", "eval"] {
            sum += node.inspect().calls(command).await;
        }
    }
    sum
}
