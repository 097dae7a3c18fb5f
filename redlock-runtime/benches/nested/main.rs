//! Measures a reentrant call in the body of a call with the same key, which enters without a command. Also measures the
//! overhead of `with_lock`, which makes its lock visible to calls in its body.
//!
//! `cargo bench -p redlock-runtime --bench nested` prints the tables and writes them to `benches/nested.md`.
//! The argument `-- --quick` runs a short plan and writes nothing.
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
/// Maximum duration of a nested call.
const GOAL: Duration = Duration::from_nanos(300);
/// Maximum time of `with_lock`, as a multiple of `acquire` and drop.
const LIMIT: f64 = 1.02;
/// Number of nested calls in one measurement, because reading the clock takes about a tenth of the time of a call.
const BATCH: u32 = 1000;
/// Linger duration of the manager that lingers.
const LINGER: Duration = Duration::from_secs(2);

/// Durations of all pairs, and the mean duration of each batch of nested calls.
#[derive(Default)]
struct Report {
    attribute: Vec<Duration>,
    by_hand: Vec<Duration>,
    pairs: Vec<Pairs>,
}

/// Durations of `acquire` with a drop, and of `with_lock`.
struct Pairs {
    what: &'static str,
    plain: Vec<Duration>,
    shown: Vec<Duration>,
}

#[tokio::main]
async fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let (batches, calls) = if is_quick { (20, 500) } else { (2000, 50_000) };
    let nodes = Nodes::start(1).await;
    let (asking, lingering) = (manager(&nodes, Duration::ZERO).await, manager(&nodes, LINGER).await);
    let mut report = Report::default();
    Box::pin(enclosing(&asking, ID, batches, &mut report)).await.expect("nobody else wants it");
    report.pairs.push(pairs("on one node", &asking, calls).await.expect("nobody else wants it"));
    report
        .pairs
        .push(pairs("with `linger`, without a command", &lingering, calls).await.expect("nobody else wants it"));
    print!("{report}");
    if !is_quick {
        result_file::write("nested", "Nested calls", &report);
    }
}

async fn manager(nodes: &Nodes, linger: Duration) -> LockManager {
    let builder = LockManager::builder().nodes(nodes.urls()).linger(linger);
    let manager = builder.build().expect("the harness gives valid URLs");
    manager.ready().await.expect("the server has been started");
    manager
}

#[distributed_lock(key = "order:{id}", manager = locks, reentrant)]
async fn nested(locks: &LockManager, id: u64) -> Result<u64, LockError> {
    Ok(id)
}

#[distributed_lock(key = "order:{id}", manager = locks)]
async fn enclosing(locks: &LockManager, id: u64, batches: usize, report: &mut Report) -> Result<(), LockError> {
    let request = LockRequest::new(format!("order:{id}")).reentrant();
    let with_lock = async || locks.with_lock(request.clone(), async |_: &LockGuard| Ok::<_, LockError>(id)).await;
    // Alternate, so that a change of the machine's speed affects both equally.
    for _ in 0..batches {
        report.attribute.push(mean(async || nested(locks, id).await).await?);
        report.by_hand.push(mean(with_lock).await?);
    }
    Ok(())
}

/// Returns the mean duration of many calls.
async fn mean(call: impl AsyncFn() -> Result<u64, LockError>) -> Result<Duration, LockError> {
    let begun = Instant::now();
    for _ in 0..BATCH {
        std::hint::black_box(call().await?);
    }
    Ok(begun.elapsed() / BATCH)
}

/// Measures `acquire` with a drop, and `with_lock`, in alternation.
async fn pairs(what: &'static str, manager: &LockManager, calls: usize) -> Result<Pairs, LockError> {
    let (mut plain, mut shown) = (Vec::with_capacity(calls), Vec::with_capacity(calls));
    let request = LockRequest::new("pair");
    for _ in 0..calls {
        let begun = Instant::now();
        let guard = manager.acquire(request.clone()).await?;
        guard.ensure_held()?;
        drop(guard);
        plain.push(begun.elapsed());
        let begun = Instant::now();
        manager.with_lock(request.clone(), async |_: &LockGuard| Ok::<_, LockError>(())).await?;
        shown.push(begun.elapsed());
    }
    Ok(Pairs { what, plain, shown })
}

const WHY_A_NESTED_CALL_TAKES_LONGER: &str = "
A sampling profiler shows where the time goes. Four reads of the clock take a sixth of it. They guarantee that the caller still holds
its lock when the nested call enters, when its body is polled, and when it ends. Copies of futures and of the call take an eighth.
The rest is spread over some thirty functions. They evaluate the request, and use the frames of the thread, the local queue, the
counters for `stats`, and the mutex of the token. The frames already need no allocation and no mutex. A single read of the clock would
save about a tenth, but a body could then begin under a lease that has expired. A nested call that reaches the goal would need a
separate path that does not create a call from the request.";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "The body of a call makes nested calls with the same key, each with a body. A sample is the mean of {BATCH} nested calls.\n"
        )?;
        writeln!(f, "| a nested call | p50 | p99 | to reach | |")?;
        writeln!(f, "|---|---:|---:|---:|---|")?;
        for (what, times) in [("of an annotated function", &self.attribute), ("by `with_lock`", &self.by_hand)] {
            let [median, late] = [50, 99].map(|percent| percentile(times, percent));
            let verdict = result_file::verdict(median <= GOAL);
            writeln!(f, "| {what} | {median:?} | {late:?} | {GOAL:?} | {verdict} |")?;
        }
        writeln!(f, "{WHY_A_NESTED_CALL_TAKES_LONGER}")?;
        writeln!(
            f,
            "\nThe next table compares two forms of an ordinary call. The first form is `acquire`, one check of the guard, and \
             its drop. The second form is `with_lock`, which makes its lock visible to the calls in its body.\n"
        )?;
        writeln!(f, "| a pair | `acquire`, p50 | `with_lock`, p50 | ratio | to reach | |")?;
        writeln!(f, "|---|---:|---:|---:|---:|---|")?;
        for Pairs { what, plain, shown } in &self.pairs {
            let [plain, shown] = [plain, shown].map(|times| percentile(times, 50));
            let ratio = shown.as_secs_f64() / plain.as_secs_f64();
            let verdict = result_file::verdict(ratio <= LIMIT);
            writeln!(f, "| {what} | {plain:.2?} | {shown:.2?} | {ratio:.3} | at most {LIMIT} | {verdict} |")?;
        }
        writeln!(
            f,
            "\nThe additional work of `with_lock` is visible if no command is sent. It pushes and pops its frame at each poll of the \
             body, and checks before each poll that the lock is held. This takes about 0.1 µs in total."
        )
    }
}
