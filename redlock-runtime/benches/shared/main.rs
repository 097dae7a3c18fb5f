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
A lock that is not shared is taken by a plain `SET`. A share is taken by a script, because a sorted set is asked for writers and for
those who wait before anything is written; the client sends as many bytes and does hardly more. The server takes about 1.7 times as
long, which over five servers on two cores is what the caller waits for. Scripts of their own for locks that nobody waits for, and fewer
commands in them, were tried and are in use.";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "All in one run, in turns. One pair is an acquisition and the release as the caller sees them, of locks that"
        )?;
        writeln!(
            f,
            "nobody else wants: of another key for each task, or of one key that all of them share. CPU is that of all"
        )?;
        writeln!(f, "threads of this process for each pair; the servers have the machine besides.\n")?;
        writeln!(
            f,
            "| nodes | tasks | keys | p50, alone | p50, shared | ratio | to reach | | CPU | CPU, shared | ratio |"
        )?;
        writeln!(f, "|---:|---:|---|---:|---:|---:|---:|---|---:|---:|---:|")?;
        self.free.iter().try_for_each(|row| writeln!(f, "{row}"))?;
        writeln!(f, "{WHY_A_SHARE_COSTS_MORE}")?;
        writeln!(
            f,
            "\nA writer gives its lock back: how long until the next writer has it, and until all of so many readers have it,"
        )?;
        writeln!(f, "each of another manager.\n")?;
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
