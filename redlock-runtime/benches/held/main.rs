//! Measures the cost of holding locks: the renewal of many locks, the check before a side effect, and a short call that
//! ends before its first renewal.
//!
//! `cargo bench -p redlock-runtime --bench held` prints the table and writes it to `benches/held.md`.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark that cannot run should say so and stop"
)]

mod check;
#[path = "../common/cpu_time.rs"]
mod cpu_time;
#[path = "../common/percentile.rs"]
mod percentile;
mod renewal;
mod report;
mod resident;
#[path = "../common/result_file.rs"]
mod result_file;
mod short_call;

use redlock_runtime::LockManager;
use redlock_tests::Nodes;
use report::Report;

/// Returns `true` with `--quick`, which runs a short plan and does not write the table.
fn is_quick() -> bool {
    std::env::args().any(|argument| argument == "--quick")
}

#[tokio::main]
async fn main() {
    let nodes = Nodes::start(3).await;
    let manager = LockManager::builder().nodes(nodes.urls()).build().expect("the harness gives valid URLs");
    manager.ready().await.expect("the server has been started");
    let report = Report {
        // Measure this first. Later it would reuse memory that earlier measurements have freed.
        renewal: renewal::measure(&manager, &nodes, is_quick()).await,
        check: check::measure(&manager).await,
        short_call: short_call::measure(&manager, is_quick()).await,
    };
    print!("{report}");
    if !is_quick() {
        result_file::write("held", "Holding locks", &report);
    }
}
