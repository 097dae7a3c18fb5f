//! Many readers in one process, and a writer in another process.

use crate::percentile::percentile;
use crate::result_file;
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, Mode};
use redlock_tests::Nodes;
use std::fmt;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

const READERS: usize = 64;
const KEY: &str = "bench";
/// Length of a reader's body. Too small: the result shows the precision of tokio's timers, which is one millisecond.
const BODY: Duration = Duration::from_millis(5);
/// Pause of the writer between two locks.
const PAUSE: Duration = Duration::from_millis(100);

/// Minimum number of bodies with shared locks, as a multiple of the number with exclusive locks.
const LEAST: f64 = 40.0;
/// Maximum number of client commands on each node per body.
const MOST_COMMANDS: f64 = 0.1;
/// Maximum of the writer's median wait, as a multiple of the mean length of a reader's body.
const LONGEST_WAIT: f64 = 2.0;

/// One row of the table.
pub(crate) struct Joined {
    nodes: usize,
    in_turns: f64,
    together: f64,
    /// Number of commands per body on one node, without a writer.
    commands: f64,
    /// Waits of the writer.
    waits: Vec<Duration>,
    /// Mean length of a reader's body while the writer runs. It exceeds [`BODY`], because the timer is imprecise and
    /// the task waits for a thread.
    body: Duration,
    commands_with_writer: f64,
}

/// Number of bodies, and their total duration.
#[derive(Default)]
struct Bodies {
    count: u32,
    time: Duration,
}

impl Joined {
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer")]
    pub(crate) async fn measure(servers: &Nodes, time: Duration) -> Self {
        let (ours, theirs) = (crate::manager(&servers.urls()).await, crate::manager(&servers.urls()).await);
        let in_turns = run(&ours, Mode::Exclusive, time).await;
        // Subscribe to the channels before the measurement, as in a process that has run for a while.
        run(&ours, Mode::Shared, time / 10).await;
        let before = servers.commands_processed().await;
        let together = run(&ours, Mode::Shared, time).await;
        let between = servers.commands_processed().await;
        let (bodies, waits) = tokio::join!(run(&ours, Mode::Shared, time), write(&theirs, time));
        let after = servers.commands_processed().await;
        let each = |commands: u64, bodies: &Bodies| commands as f64 / servers.len() as f64 / f64::from(bodies.count);
        let rate = |bodies: &Bodies| f64::from(bodies.count) / time.as_secs_f64();
        let (commands, commands_with_writer) = (each(between - before, &together), each(after - between, &bodies));
        let (in_turns, together, body) = (rate(&in_turns), rate(&together), bodies.time / bodies.count);
        Self { nodes: servers.len(), in_turns, together, commands, waits, body, commands_with_writer }
    }
}

/// Runs bodies in [`READERS`] concurrent tasks for the given time.
async fn run(manager: &LockManager, mode: Mode, time: Duration) -> Bodies {
    let end = Instant::now() + time;
    let mut tasks = JoinSet::new();
    for _ in 0..READERS {
        let manager = manager.clone();
        tasks.spawn(async move {
            let mut bodies = Bodies::default();
            while Instant::now() < end {
                let body = async |_: &LockGuard| {
                    let begun = Instant::now();
                    sleep(BODY).await;
                    Ok::<_, LockError>(begun.elapsed())
                };
                let request = LockRequest::new(KEY).mode(mode).wait(Duration::from_secs(60));
                bodies.time += manager.with_lock(request, body).await.expect("it comes to its turn");
                bodies.count += 1;
            }
            bodies
        });
    }
    let add = |all: Bodies, one: Bodies| Bodies { count: all.count + one.count, time: all.time + one.time };
    tasks.join_all().await.into_iter().fold(Bodies::default(), add)
}

/// Returns the waits of a writer.
async fn write(manager: &LockManager, time: Duration) -> Vec<Duration> {
    let (end, mut waits) = (Instant::now() + time, Vec::new());
    while Instant::now() + PAUSE < end {
        sleep(PAUSE).await;
        let begun = Instant::now();
        let held = manager.acquire(KEY).await.expect("it comes in");
        waits.push(begun.elapsed());
        held.release().await.expect("it is held");
    }
    waits
}

impl fmt::Display for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, in_turns, together, commands, waits, body, commands_with_writer } = self;
        let ratio = together / in_turns;
        let bodies = |percent| percentile(waits, percent).as_secs_f64() / body.as_secs_f64();
        let (median, most) = (bodies(50), bodies(99));
        let verdict = result_file::verdict;
        write!(f, "| {nodes} | {in_turns:.0} | {together:.0} | {ratio:.1} | {} |", verdict(ratio >= LEAST))?;
        write!(
            f,
            " {commands:.3} | {} | {commands_with_writer:.3} | {body:.1?} |",
            verdict(*commands <= MOST_COMMANDS)
        )?;
        write!(f, " {median:.2} | {most:.2} | {} |", verdict(median <= LONGEST_WAIT))
    }
}

/// Writes the table with these results.
pub(crate) fn table(lines: &[Joined], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "\n{READERS} tasks of one manager lock one key again and again, for {BODY:?} each time. The table shows the bodies per second with exclusive"
    )?;
    writeln!(
        f,
        "locks, which pass from task to task, and with shared locks. It also shows the commands at each node for one body. Another run with"
    )?;
    writeln!(
        f,
        "shared locks has a writer in another manager, which pauses for {PAUSE:?} between its locks. The columns that follow \"with a writer\" show \
         the length of a body in this run, and the wait of the writer in bodies.\n"
    )?;
    writeln!(
        f,
        "| nodes | in turns | shared | ratio | at least {LEAST} | commands | at most {MOST_COMMANDS} | with a writer | a body | p50 of its wait, in bodies | p99 | at most {LONGEST_WAIT} |"
    )?;
    writeln!(f, "|---:|---:|---:|---:|---|---:|---|---:|---:|---:|---:|---|")?;
    lines.iter().try_for_each(|line| writeln!(f, "{line}"))
}
