//! Compares locks of two keys and of paths with locks of one key. Measures uncontended locks, locks among a hundred
//! thousand held locks, concurrent transfers, and the memory of held locks on a server.
//!
//! `cargo bench -p redlock-runtime --bench sets` prints the tables and writes them to `benches/sets.md`.
//! The argument `-- --quick` runs a short plan and writes nothing.
#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot run should say so and stop")]

mod accounts;
mod among_held;
#[path = "../common/cpu_time.rs"]
mod cpu_time;
mod free;
mod held;
#[path = "../common/jain.rs"]
mod jain;
mod kind;
mod memory;
mod pairs;
#[path = "../common/percentile.rs"]
mod percentile;
#[path = "../common/result_file.rs"]
mod result_file;
mod server_cpu;
mod storm;
mod teller;

use among_held::AmongHeld;
use free::Free;
use memory::Memory;
use redlock_runtime::LockManager;
use redlock_tests::Nodes;
use std::fmt;
use std::time::Duration;
use storm::Storm;
use tokio::runtime::Runtime;

/// Extent of the measurements.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Number of turns. Each turn measures every kind of lock once.
    turns: usize,
    /// Number of storms. `storm` is the duration of one storm.
    storms: usize,
    storm: Duration,
    /// Number of locks that are held at once.
    held: usize,
}

const WHOLE: Plan = Plan { turns: 30, storms: 3, storm: Duration::from_millis(2500), held: 100_000 };
const QUICK: Plan = Plan { turns: 4, storms: 1, storm: Duration::from_secs(1), held: 10_000 };

/// Longer than the benchmark, so that no lock is renewed during a measurement.
const TTL: Duration = Duration::from_secs(1800);

struct Report {
    free: Vec<Free>,
    among_held: AmongHeld,
    storms: Vec<Storm>,
    memory: Memory,
}

fn main() {
    if !teller::was_child() {
        Runtime::new().expect("a runtime").block_on(run());
    }
}

async fn run() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let plan = if is_quick { QUICK } else { WHOLE };
    let (mut free, mut storms) = (Vec::new(), Vec::new());
    for nodes in [1, 5] {
        let servers = Nodes::start(nodes).await;
        free.push(Free::measure(&servers, plan.turns).await);
        for load in storm::LOADS {
            storms.push(Storm::measure(&servers, load, plan).await);
        }
    }
    let among_held = AmongHeld::measure(plan).await;
    let report = Report { free, among_held, storms, memory: Memory::measure(plan.held).await };
    print!("{report}");
    if !is_quick {
        result_file::write("sets", "Several keys, and places in a tree", &report);
    }
}

async fn manager(urls: &[String]) -> LockManager {
    let builder = LockManager::builder().nodes(urls).tuning(|tuning| tuning.max_ttl(TTL));
    let manager = builder.build().expect("the harness gives valid URLs");
    manager.ready().await.expect("the nodes are up");
    manager
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        free::table(&self.free, f)?;
        write!(f, "{}", self.among_held)?;
        storm::table(&self.storms, f)?;
        write!(f, "{}", self.memory)
    }
}
