//! Compares how this library and rslock keep locks when nodes fail. Measures how many locks are lost, when their
//! holders notice, and when the next holder begins.
//!
//! `cargo bench -p redlock-runtime --bench keeping` prints the table and writes it to `benches/keeping.md`. It takes
//! three minutes.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark that cannot run should say so and stop"
)]

mod body;
mod contestant;
mod fault;
mod outcome;
#[path = "../common/percentile.rs"]
mod percentile;
mod plan;
mod report;
#[path = "../common/result_file.rs"]
mod result_file;
mod site;
mod trial;

use contestant::Kind;
use fault::Fault;
use futures_util::future::join_all;
use plan::Plan;
use report::{Report, Row};

#[tokio::main]
async fn main() {
    let plan = Plan::from_arguments();
    let mut report = Report::default();
    for fault in Fault::ALL {
        report.rows.extend(measure(&plan, fault).await);
    }
    print!("{report}");
    if plan.is_complete() {
        result_file::write("keeping", "Keeping locks", &report);
    }
}

/// Returns a row for each number of nodes.
async fn measure(plan: &Plan, fault: Fault) -> Vec<Row> {
    let sizes = plan.sizes.iter().copied().filter(|nodes| fault.is_possible_with(*nodes));
    let mut rows: Vec<_> = sizes.map(|nodes| Row { fault, nodes, outcomes: Default::default() }).collect();
    for _ in 0..plan.turns(fault) {
        // Run the trials in parallel on separate servers, because they are idle most of the time.
        let trials = rows.iter().map(|row| join_all(Kind::ALL.map(|kind| trial::run(kind, fault, row.nodes))));
        let done = join_all(trials).await;
        for (row, outcomes) in rows.iter_mut().zip(done) {
            row.outcomes.iter_mut().zip(outcomes).for_each(|(all, more)| all.extend(more));
        }
    }
    rows
}
