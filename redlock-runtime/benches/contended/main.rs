//! Compares contended locks: this library, rslock, and a loop around `SET NX PX`.
//!
//! `cargo bench -p redlock-runtime --bench contended` prints the table and writes it to `benches/contended.md`, with a
//! picture of the waits in `benches/contended.svg`.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark that cannot run should say so and stop"
)]

mod bare;
mod contender;
mod counter;
mod crowd;
mod hand_off;
mod hot_key;
#[path = "../common/jain.rs"]
mod jain;
mod killed;
mod local;
mod mean;
#[path = "../common/moment.rs"]
mod moment;
#[path = "../common/percentile.rs"]
mod percentile;
mod picture;
mod plan;
mod process;
mod queue;
#[path = "../common/raw.rs"]
mod raw;
mod report;
#[path = "../common/result_file.rs"]
mod result_file;
mod table;
mod traffic;
#[path = "../common/wire.rs"]
mod wire;

use plan::Plan;
use redlock_tests::Nodes;
use report::Report;

fn main() {
    if !process::was_child() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        // Run on a worker thread of the runtime, as the tasks of a service do.
        runtime.block_on(runtime.spawn(run(Plan::from_arguments()))).expect("no panic");
    }
}

async fn run(plan: Plan) {
    let (one, five) = (Nodes::start(1).await, Nodes::start(hot_key::NODES).await);
    let (hand_off, bare_hand_off) = hand_off::measure(&plan, &one).await;
    let report = Report {
        hand_off,
        bare_hand_off,
        queue_at_one: queue::measure(&plan, &one).await,
        queue_at_five: queue::measure(&plan, &five).await,
        local: local::measure(&plan, &one).await,
        hot_key: hot_key::measure(&plan, &five).await,
        killed: killed::measure(&plan, &one).await,
    };
    print!("{report}");
    if plan.is_complete() {
        report.write();
    }
}
