//! Compares uncontended locks: this library with its attribute, a handwritten lock on redis-rs, and rslock.
//!
//! `cargo bench -p redlock-runtime` prints the table and writes it to `benches/uncontended.md`.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark that cannot run should say so and stop"
)]

mod awaited;
mod bare;
mod contestants;
#[path = "../common/cpu_time.rs"]
mod cpu_time;
mod measure;
#[path = "../common/percentile.rs"]
mod percentile;
#[path = "../common/raw.rs"]
mod raw;
mod report;
#[path = "../common/result_file.rs"]
mod result_file;
#[path = "../common/wire.rs"]
mod wire;

use awaited::Awaited;
use bare::Bare;
use contestants::{Contestant, Ours, RawAwaited, RawUnawaited, Rslock};
use measure::{Figures, Plan, measure};
use redlock_tests::Nodes;
use report::{Report, Scene};
use std::sync::Arc;
use tokio::runtime;

fn main() {
    let plan = Plan::from_arguments();
    let mut report = Report::default();
    let threads = runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    threads.block_on(on_all_threads(&plan, &mut report));
    let thread = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    thread.block_on(on_one_thread(&plan, &mut report));

    print!("{report}");
    if plan.is_complete() {
        report.write();
    }
}

async fn on_all_threads(plan: &Plan, report: &mut Report) {
    let one = Nodes::start(1).await;
    let contestants: Vec<Arc<dyn Contestant>> = vec![
        Arc::new(RawAwaited::connect(&one).await),
        Arc::new(RawUnawaited::connect(&one).await),
        Arc::new(Ours::connect(&one).await),
        Arc::new(Rslock::connect(&one)),
        Arc::new(Awaited::connect(&one).await),
        Arc::new(Bare::connect(&one)),
    ];
    report.add(Scene::OneNode, run(plan, &contestants).await);

    let five = Nodes::start(5).await;
    let ours: Arc<dyn Contestant> = Arc::new(Ours::connect(&five).await);
    let contestants: Vec<Arc<dyn Contestant>> = vec![
        Arc::new(RawAwaited::connect(&five).await),
        Arc::clone(&ours),
        Arc::new(Rslock::connect(&five)),
        Arc::new(Awaited::connect(&five).await),
        Arc::new(Bare::connect(&five)),
    ];
    report.add(Scene::FiveNodes, run(plan, &contestants).await);

    // The next run includes a warm-up, in which the manager notices the frozen node.
    five[0].freeze();
    let frozen = run(plan, &[ours]).await;
    // Use one task: each pair of rslock takes about a second now, and its tasks wait for each other.
    let rslock: Arc<dyn Contestant> = Arc::new(Rslock::connect(&five));
    let rslock = measure(plan, &rslock, 1).await;
    five[0].thaw();
    report.add(Scene::FiveNodesOneFrozen, frozen.into_iter().chain([rslock]).collect());
}

/// Measures the CPU time on a runtime with one thread, where no thread wakes another.
async fn on_one_thread(plan: &Plan, report: &mut Report) {
    let five = Nodes::start(5).await;
    let contestants: Vec<Arc<dyn Contestant>> = vec![
        Arc::new(Ours::connect(&five).await),
        Arc::new(Rslock::connect(&five)),
        Arc::new(Awaited::connect(&five).await),
    ];
    report.add(Scene::FiveNodesOneThread, run(plan, &contestants).await);
}

/// Measures in alternation, so that a change of the machine's speed affects every contestant equally.
async fn run(plan: &Plan, contestants: &[Arc<dyn Contestant>]) -> Vec<Figures> {
    let mut figures: Vec<Figures> = contestants.iter().map(|contestant| Figures::new(contestant.name())).collect();
    for _ in 0..plan.turns {
        for (contestant, figures) in contestants.iter().zip(&mut figures) {
            figures.merge(measure(plan, contestant, contestant.most_tasks()).await);
        }
    }
    figures
}
