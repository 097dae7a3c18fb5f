//! What a lock costs when nobody else wants it: ours through the attribute, beside a raw redis-rs pair and rslock.
//!
//! `cargo bench -p redlock-runtime` prints the table and writes it to `benches/uncontended.md`.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark that cannot run should say so and stop"
)]

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

use bare::Bare;
use contestants::{Contestant, Ours, RawAwaited, RawUnawaited, Rslock};
use measure::{Figures, Plan, measure};
use redlock_tests::Nodes;
use report::{Report, Scene};
use std::sync::Arc;

#[tokio::main]
async fn main() {
    let plan = Plan::from_arguments();
    let mut report = Report::default();

    let one = Nodes::start(1).await;
    let contestants: Vec<Arc<dyn Contestant>> = vec![
        Arc::new(RawAwaited::connect(&one).await),
        Arc::new(RawUnawaited::connect(&one).await),
        Arc::new(Ours::connect(&one).await),
        Arc::new(Rslock::connect(&one)),
        Arc::new(Bare::connect(&one)),
    ];
    report.add(Scene::OneNode, run(&plan, &contestants).await);

    let five = Nodes::start(5).await;
    let ours: Arc<dyn Contestant> = Arc::new(Ours::connect(&five).await);
    let contestants: Vec<Arc<dyn Contestant>> = vec![
        Arc::new(RawAwaited::connect(&five).await),
        Arc::clone(&ours),
        Arc::new(Rslock::connect(&five)),
        Arc::new(Bare::connect(&five)),
    ];
    report.add(Scene::FiveNodes, run(&plan, &contestants).await);

    // The frozen node must be noticed once before its price can be the lasting one.
    five[0].freeze();
    let frozen = run(&plan, &[ours]).await;
    // One task: each of rslock's pairs takes about a second now, and its tasks wait for each other.
    let rslock: Arc<dyn Contestant> = Arc::new(Rslock::connect(&five));
    let rslock = measure(&plan, &rslock, 1).await;
    five[0].thaw();
    report.add(Scene::FiveNodesOneFrozen, frozen.into_iter().chain([rslock]).collect());

    print!("{report}");
    if plan.is_complete() {
        report.write();
    }
}

/// Takes turns, so that a change of the machine's speed meets every contestant alike.
async fn run(plan: &Plan, contestants: &[Arc<dyn Contestant>]) -> Vec<Figures> {
    let mut figures: Vec<Figures> = contestants.iter().map(|contestant| Figures::new(contestant.name())).collect();
    for _ in 0..plan.turns {
        for (contestant, figures) in contestants.iter().zip(&mut figures) {
            figures.merge(measure(plan, contestant, contestant.most_tasks()).await);
        }
    }
    figures
}
