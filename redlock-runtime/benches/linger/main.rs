//! Measures the effect of `linger` on a process and on other processes: the same calls with and without it, in
//! alternation.
//!
//! `cargo bench -p redlock-runtime --bench linger` prints the tables and writes them to `benches/linger.md`.
//! The argument `-- --quick` runs a short plan and writes nothing.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark that cannot run should say so and stop"
)]

#[path = "../common/percentile.rs"]
mod percentile;
mod ping_pong;
mod reacquisition;
#[path = "../common/result_file.rs"]
mod result_file;
mod zipf;

use redlock_runtime::LockManager;
use redlock_tests::Nodes;
use std::fmt;
use std::time::Duration;

/// Linger duration of the side that lingers.
const LINGER: Duration = Duration::from_secs(2);
/// Linger durations of the compared sides. The third side repeats the first, to show the random variation of a ratio.
const SIDES: [Duration; 3] = [Duration::ZERO, LINGER, Duration::ZERO];
/// Index of the side that lingers.
const LINGERING: usize = 1;
const METHOD: &str = include_str!("method.md");
const SIZES: [usize; 2] = [1, 5];

/// Extent of the measurements.
#[derive(Clone, Copy)]
struct Extent {
    /// Number of turns. Each turn measures all sides with new connections.
    turns: usize,
    /// Duration of the measurement of one side.
    time: Duration,
    /// Minimum number of pairs of a side in a turn with pauses. Too small: the result mainly shows the first calls for
    /// a key, in which a process learns whether others use it.
    least: usize,
}

/// One row of the table: a ratio and its limit.
struct Row {
    what: String,
    /// Time of a pair on each side.
    pairs: [Duration; 3],
    note: String,
    limit: f64,
}

struct Report(Vec<Row>);

#[tokio::main]
async fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let extent = if is_quick {
        Extent { turns: 1, time: Duration::from_millis(300), least: 6 }
    } else {
        Extent { turns: 6, time: Duration::from_secs(3), least: 60 }
    };
    let mut report = Report(Vec::new());
    for size in SIZES {
        report.0.push(reacquisition::measure(&Nodes::start(size).await, extent).await);
    }
    let nodes = Nodes::start(5).await;
    for (foreign, limit) in [(0, 0.05), (1, 0.5), (5, 0.7), (20, 1.0), (50, 1.05)] {
        report.0.push(zipf::measure(&nodes, extent, foreign, limit).await);
    }
    for pause in [0, 20, 500].map(Duration::from_millis) {
        report.0.push(ping_pong::measure(&nodes, extent, pause).await);
    }
    print!("{report}");
    if !is_quick {
        result_file::write("linger", "Lingering locks", &report);
    }
}

/// Creates a manager with separate connections, as in a separate process.
async fn manager(nodes: &Nodes, linger: Duration) -> LockManager {
    let builder = LockManager::builder().nodes(nodes.urls()).linger(linger);
    let manager = builder.build().expect("the harness gives valid URLs");
    manager.ready().await.expect("the nodes are up");
    manager
}

/// Returns the sides in an order that changes with each turn.
fn in_turn(turn: usize) -> impl Iterator<Item = usize> {
    (0..SIDES.len()).map(move |place| (place + turn) % SIDES.len())
}

fn mean(durations: &[Duration]) -> Duration {
    let number = u32::try_from(durations.len()).expect("not that many");
    durations.iter().sum::<Duration>() / number.max(1)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "A pair is an acquisition and the drop of its guard, as the caller sees them. All sides in one run, in turns, in an \
             order that changes; `linger` is {LINGER:?}. What is measured without it a second time shows what chance makes of \
             a ratio.\n"
        )?;
        writeln!(f, "| | without | with `linger` | ratio | without, again | to reach | | |")?;
        writeln!(f, "|---|---:|---:|---:|---:|---:|---|---|")?;
        for Row { what, pairs: [without, with, again], note, limit } in &self.0 {
            let [ratio, chance] = [with, again].map(|side| side.as_secs_f64() / without.as_secs_f64());
            let verdict = result_file::verdict(ratio <= *limit);
            write!(f, "| {what} | {without:.1?} | {with:.1?} | {ratio:.2} | {chance:.2} | ")?;
            writeln!(f, "at most {limit} | {verdict} | {note} |")?;
        }
        write!(f, "\n{METHOD}")
    }
}
