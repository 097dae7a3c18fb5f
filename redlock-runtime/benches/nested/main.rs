//! What a call costs in the body of another one with the same key, which enters without a command.
//!
//! `cargo bench -p redlock-runtime --bench nested` prints the table and writes it to `benches/nested.md`; with `-- --quick`, it
//! only shows that it runs.
#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot run should say so and stop")]

#[path = "../common/percentile.rs"]
mod percentile;
#[path = "../common/result_file.rs"]
mod result_file;

use percentile::percentile;
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, distributed_lock};
use redlock_tests::Nodes;
use std::fmt;
use std::time::{Duration, Instant};

const ID: u64 = 123_456;
/// What a nested call may cost.
const GOAL: Duration = Duration::from_nanos(300);
/// So many calls are measured together, because the clock costs about as much as one of them.
const BATCH: u32 = 1000;

#[distributed_lock(key = "order:{id}", manager = locks, reentrant)]
async fn nested(locks: &LockManager, id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key = "order:{id}", manager = locks)]
async fn outer(locks: &LockManager, id: u64, batches: usize) -> Result<Measured, LockError> {
    let request = LockRequest::new(format!("order:{id}")).reentrant(true);
    let with_lock = async || locks.with_lock(request.clone(), async |_: &LockGuard| Ok::<_, LockError>(id)).await;
    let mut measured = Measured { attribute: Vec::new(), by_hand: Vec::new() };
    // In turns, so that a change of the machine's speed meets both alike.
    for _ in 0..batches {
        measured.attribute.push(mean(async || nested(locks, id).await).await?);
        measured.by_hand.push(mean(with_lock).await?);
    }
    Ok(measured)
}

/// How long one of many calls takes.
async fn mean(call: impl AsyncFn() -> Result<u64, LockError>) -> Result<Duration, LockError> {
    let begun = Instant::now();
    for _ in 0..BATCH {
        std::hint::black_box(call().await?);
    }
    Ok(begun.elapsed() / BATCH)
}

struct Measured {
    attribute: Vec<Duration>,
    by_hand: Vec<Duration>,
}

#[tokio::main]
async fn main() {
    let batches = if std::env::args().any(|argument| argument == "--quick") { 20 } else { 2000 };
    let nodes = Nodes::start(1).await;
    let manager = LockManager::builder().nodes(nodes.urls()).build().expect("the harness gives valid URLs");
    manager.ready().await.expect("the server has been started");
    let measured = Box::pin(outer(&manager, ID, batches)).await.expect("nobody else wants it");
    print!("{measured}");
    if batches > 20 {
        result_file::write("nested", "Nested calls", &measured);
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "A call with its body, in the body of another one with the same key, on one node: {BATCH} at a time.\n"
        )?;
        writeln!(f, "| a nested call | p50 | p99 | to reach | |")?;
        writeln!(f, "|---|---:|---:|---:|---|")?;
        for (what, times) in [("of an annotated function", &self.attribute), ("by `with_lock`", &self.by_hand)] {
            let [median, late] = [50, 99].map(|percent| percentile(times, percent));
            let verdict = result_file::verdict(median <= GOAL);
            writeln!(f, "| {what} | {median:?} | {late:?} | {GOAL:?} | {verdict} |")?;
        }
        Ok(())
    }
}
