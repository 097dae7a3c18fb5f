//! Compares shared locks and permits with exclusive locks: uncontended, handed over, and in many tasks of one process.
//!
//! `cargo bench -p redlock-runtime --bench shared` prints the tables and writes them to `benches/shared.md`.
#![allow(
    clippy::cast_precision_loss,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot run should say so and stop"
)]

mod beside;
#[path = "../common/cpu_time.rs"]
mod cpu_time;
mod free;
mod hand_over;
mod joined;
#[path = "../common/moment.rs"]
mod moment;
#[path = "../common/percentile.rs"]
mod percentile;
mod permits;
mod process;
mod processes;
#[path = "../common/result_file.rs"]
mod result_file;

use beside::Beside;
use free::Free;
use hand_over::HandOver;
use joined::Joined;
use permits::Permits;
use processes::Processes;
use redlock_runtime::LockManager;
use redlock_tests::Nodes;
use std::fmt;
use std::time::Duration;
use tokio::runtime::Runtime;

#[derive(Default)]
struct Report {
    free: Vec<Free>,
    handed: Vec<HandOver>,
    processes: Vec<Processes>,
    joined: Vec<Joined>,
    permits: Vec<Permits>,
    beside: Vec<Beside>,
}

fn main() {
    if !process::was_child() {
        Runtime::new().expect("a runtime").block_on(run());
    }
}

async fn run() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let (turns, rounds, seconds, beside_turns) = if is_quick { (4, 5, 2, 1) } else { (24, 60, 10, 6) };
    let mut report = Report::default();
    if std::env::args().any(|argument| argument == "--beside") {
        report.beside.push(Beside::measure(&Nodes::start(1).await, beside_turns).await);
        return print!("{}", beside::Tables(&report.beside));
    }
    for nodes in [1, 5] {
        let servers = Nodes::start(nodes).await;
        let manager = manager(&servers.urls()).await;
        for (tasks, is_one_key) in [(1, false), (16, false), (16, true)] {
            report.free.push(Free::measure(&manager, (nodes, tasks, is_one_key), turns).await);
        }
        report.handed.push(HandOver::measure(&servers, rounds).await);
        report.processes.push(Processes::measure(&servers, rounds).await);
        report.joined.push(Joined::measure(&servers, Duration::from_secs(seconds)).await);
        report.permits.push(Permits::measure(&servers, turns, Duration::from_secs(seconds)).await);
        report.beside.push(Beside::measure(&servers, beside_turns).await);
    }
    print!("{report}");
    if !is_quick {
        result_file::write("shared", "Shared locks", &report);
    }
}

async fn manager(urls: &[String]) -> LockManager {
    let manager = LockManager::builder().nodes(urls).build().expect("the harness gives valid URLs");
    manager.ready().await.expect("the nodes are up");
    manager
}

const WHY_A_SHARE_COSTS_MORE: &str = "
An exclusive lock is acquired by a plain `SET`. A shared lock is acquired by a script, because the server must first look for waiters
in the queue. The client sends as many bytes, and does hardly more work. The caller waits for the work of the servers if five of them
run on two cores. The script stores the only reader as a string, like an exclusive owner. In a run with one server, this takes about
half as long as a sorted set.";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "All measurements take turns in one run. A pair is the acquisition and the release of an uncontended lock, as the caller sees them."
        )?;
        writeln!(
            f,
            "The shared locks use one key for each task, or a single key for all tasks. The exclusive locks always use one key for each task."
        )?;
        writeln!(
            f,
            "CPU is the CPU time of a pair in all threads of this process. The servers run on the same machine.\n"
        )?;
        writeln!(
            f,
            "| nodes | tasks | keys | p50, alone | p50, shared | ratio | to reach | | CPU | CPU, shared | ratio |"
        )?;
        writeln!(f, "|---:|---:|---|---:|---:|---:|---:|---|---:|---:|---:|")?;
        self.free.iter().try_for_each(|row| writeln!(f, "{row}"))?;
        writeln!(f, "{WHY_A_SHARE_COSTS_MORE}")?;
        writeln!(
            f,
            "\nA writer releases its lock. The table shows the time until the next writer holds the lock, and the time until all readers hold it."
        )?;
        writeln!(f, "Each of these calls has a separate manager.\n")?;
        writeln!(
            f,
            "| nodes | p50, one writer | p50, all of {} readers | ratio | for each reader |",
            hand_over::READERS
        )?;
        writeln!(f, "|---:|---:|---:|---:|---:|")?;
        self.handed.iter().try_for_each(|row| writeln!(f, "{row}"))?;
        processes::table(&self.processes, f)?;
        joined::table(&self.joined, f)?;
        permits::table(&self.permits, f)?;
        write!(f, "{}", beside::Tables(&self.beside))
    }
}
