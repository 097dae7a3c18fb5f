//! Measures the cost of `fencing`: acquires and releases a lock with and without it, in alternation.
//!
//! `cargo bench -p redlock-runtime --bench fencing` prints the table and writes it to `benches/fencing.md`.
#![allow(clippy::expect_used, clippy::panic, reason = "a benchmark that cannot run should say so and stop")]

#[path = "../common/cpu_time.rs"]
mod cpu_time;
#[path = "../common/percentile.rs"]
mod percentile;
#[path = "../common/result_file.rs"]
mod result_file;

use cpu_time::cpu_time;
use percentile::percentile;
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::Nodes;
use std::fmt;
use std::time::{Duration, Instant};

const TASKS: [usize; 2] = [1, 64];

/// Maximum time of a fenced pair, as a multiple of a plain pair, with many tasks.
const MANY: f64 = 1.4;

/// Key of a task's next lock. New keys must not cost more, because the fencing registers belong to slots and not to
/// keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Same,
    New,
}

/// One row of the table.
struct Row {
    nodes: usize,
    keys: Keys,
    tasks: usize,
    plain: Pairs,
    fenced: Pairs,
    limit: f64,
}

/// Measurements of acquire-and-release pairs.
#[derive(Default)]
struct Pairs {
    latencies: Vec<Duration>,
    /// CPU time of this process in all measurements.
    cpu: Duration,
}

struct Report(Vec<Row>);

#[tokio::main]
async fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let turns = if is_quick { 4 } else { 24 };
    let mut report = Report(Vec::new());
    for (nodes, limit) in [(1, 1.12), (5, 1.20)] {
        let servers = Nodes::start(nodes).await;
        let manager = LockManager::builder().nodes(servers.urls()).build().expect("the harness gives valid URLs");
        manager.ready().await.expect("the nodes are up");
        for (keys, tasks) in [Keys::Same, Keys::New].into_iter().flat_map(|keys| TASKS.map(|tasks| (keys, tasks))) {
            let (mut plain, mut fenced) = (Pairs::default(), Pairs::default());
            for turn in 0..turns {
                plain.measure(&manager, keys, tasks, turn, false).await;
                fenced.measure(&manager, keys, tasks, turn, true).await;
            }
            let limit = if tasks == 1 { limit } else { MANY };
            report.0.push(Row { nodes, keys, tasks, plain, fenced, limit });
        }
    }
    print!("{report}");
    if !is_quick {
        result_file::write("fencing", "Fencing", &report);
    }
}

impl Pairs {
    /// Runs pairs for 0.1 s and adds their measurements.
    async fn measure(&mut self, manager: &LockManager, keys: Keys, tasks: usize, turn: usize, is_fenced: bool) {
        let used = cpu_time();
        self.latencies.extend(latencies(manager, keys, tasks, turn, is_fenced).await);
        self.cpu += cpu_time().saturating_sub(used);
    }

    fn median(&self) -> Duration {
        percentile(&self.latencies, 50)
    }

    fn cpu(&self) -> Duration {
        self.cpu / u32::try_from(self.latencies.len()).expect("not that many").max(1)
    }
}

async fn latencies(manager: &LockManager, keys: Keys, tasks: usize, turn: usize, is_fenced: bool) -> Vec<Duration> {
    let end = Instant::now() + Duration::from_millis(100);
    let workers: Vec<_> = (0..tasks)
        .map(|task| {
            let manager = manager.clone();
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                for number in 0.. {
                    let begun = Instant::now();
                    if begun >= end {
                        break;
                    }
                    let key = match keys {
                        Keys::Same => format!("bench:{task}"),
                        Keys::New => format!("bench:{is_fenced}:{task}:{turn}:{number}"),
                    };
                    pair(&manager, key, is_fenced).await.expect("nobody else wants it");
                    latencies.push(begun.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for worker in workers {
        latencies.extend(worker.await.expect("a worker panicked"));
    }
    latencies
}

async fn pair(manager: &LockManager, key: String, is_fenced: bool) -> Result<(), LockError> {
    if is_fenced {
        manager.with_lock(LockRequest::new(key).fencing(), async |_guard| Ok(())).await
    } else {
        manager.with_lock(key, async |_guard| Ok(())).await
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "One pair is an acquisition and the release as the caller sees them. All in one run, in turns. CPU is that of all \
             threads of this process for each pair.\n"
        )?;
        writeln!(f, "| nodes | keys | tasks | p50 | p50, fenced | ratio | to reach | | CPU | CPU, fenced | ratio |")?;
        writeln!(f, "|---:|---|---:|---:|---:|---:|---:|---|---:|---:|---:|")?;
        for row in &self.0 {
            let Row { nodes, tasks, keys, limit, .. } = row;
            let [plain, fenced] = [&row.plain, &row.fenced].map(Pairs::median);
            let [cpu, fenced_cpu] = [&row.plain, &row.fenced].map(Pairs::cpu);
            let [ratio, cpu_ratio] =
                [(fenced, plain), (fenced_cpu, cpu)].map(|(with, without)| with.as_secs_f64() / without.as_secs_f64());
            write!(f, "| {nodes} | {} | {tasks} | {plain:.1?} | {fenced:.1?} | {ratio:.2} |", keys.name())?;
            write!(f, " at most {limit:.2} | {} |", result_file::verdict(ratio <= *limit))?;
            writeln!(f, " {cpu:.1?} | {fenced_cpu:.1?} | {cpu_ratio:.2} |")?;
        }
        write!(f, "{}", include_str!("method.md"))
    }
}

impl Keys {
    const fn name(self) -> &'static str {
        match self {
            Self::Same => "the same again and again",
            Self::New => "a new one each time",
        }
    }
}
