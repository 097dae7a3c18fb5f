//! Compares uncontended permits with exclusive locks, and measures many calls of one process for few permits.

use crate::percentile::percentile;
use crate::result_file;
use redlock_runtime::{LockError, LockManager, LockRequest, Wait};
use redlock_tests::Nodes;
use std::fmt;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

const TASKS: usize = 500;
const PERMITS: u32 = 5;
const KEY: &str = "bench:permits";
/// Lengths of a body. The first limits the rate to `PERMITS / BODY`. Shorter bodies would show the precision of tokio's
/// timers, which is one millisecond.
const BODIES: [Duration; 2] = [Duration::from_millis(5), Duration::ZERO];
/// Pause of a task that has found all numbered keys taken.
const PAUSE: Duration = Duration::from_millis(10);
/// Pause of the second manager between two permits.
const APART: Duration = Duration::from_millis(100);

/// Maximum time of an uncontended permit on one node, as a multiple of an exclusive lock.
const MOST: f64 = 1.2;
/// Minimum number of bodies with permits, as a multiple of the number with numbered keys.
const LEAST: f64 = 5.0;
/// Maximum of the median wait, as a multiple of the length of a body.
const LONGEST_WAIT: f64 = 2.0;

/// Results for one number of nodes.
pub(crate) struct Permits {
    nodes: usize,
    alone: Vec<Duration>,
    permitted: Vec<Duration>,
    crowds: Vec<Crowd>,
}

/// Many calls for few permits.
struct Crowd {
    body: Duration,
    numbered: f64,
    passed: f64,
    /// Number of commands per body on one node, including the commands inside scripts.
    commands: f64,
    waits: Vec<Duration>,
}

impl Permits {
    pub(crate) async fn measure(servers: &Nodes, turns: usize, time: Duration) -> Self {
        let (ours, theirs) = (crate::manager(&servers.urls()).await, crate::manager(&servers.urls()).await);
        let (mut alone, mut permitted) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            pairs(&ours, || LockRequest::new("bench:alone"), &mut alone).await;
            pairs(&ours, || LockRequest::new("bench:free").permits(PERMITS), &mut permitted).await;
        }
        let mut crowds = Vec::new();
        for body in BODIES {
            crowds.push(Crowd::measure(servers, (&ours, &theirs), body, time).await);
        }
        Self { nodes: servers.len(), alone, permitted, crowds }
    }
}

impl Crowd {
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer")]
    async fn measure(
        servers: &Nodes,
        (ours, theirs): (&LockManager, &LockManager),
        body: Duration,
        time: Duration,
    ) -> Self {
        let by_numbers = run(ours, (body, time), by_number).await;
        // Subscribe to the channels before the measurement, as in a process that has run for a while.
        run(ours, (body, time / 10), by_permit).await;
        let before = servers.commands_processed().await;
        let (by_permits, waits) = tokio::join!(run(ours, (body, time), by_permit), wait_now_and_then(theirs, time));
        let after = servers.commands_processed().await;
        let commands = (after - before) as f64 / servers.len() as f64 / by_permits as f64;
        let rate = |bodies: usize| bodies as f64 / time.as_secs_f64();
        Self { body, numbered: rate(by_numbers), passed: rate(by_permits), commands, waits }
    }
}

/// Runs pairs for 0.1 s and adds their latencies.
async fn pairs(manager: &LockManager, request: impl Fn() -> LockRequest, latencies: &mut Vec<Duration>) {
    let end = Instant::now() + Duration::from_millis(100);
    loop {
        let begun = Instant::now();
        if begun >= end {
            return;
        }
        let held = manager.acquire(request()).await.expect("nobody is in the way");
        held.release().await.expect("it is held");
        latencies.push(begun.elapsed());
    }
}

/// Runs `one` in [`TASKS`] concurrent tasks for the given time. Returns the number of bodies.
async fn run<F>(
    manager: &LockManager,
    (body, time): (Duration, Duration),
    one: fn(LockManager, Duration, usize, Instant) -> F,
) -> usize
where
    F: Future<Output = bool> + Send + 'static,
{
    let end = Instant::now() + time;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let manager = manager.clone();
        tasks.spawn(async move {
            let mut bodies = 0;
            while Instant::now() < end {
                bodies += usize::from(one(manager.clone(), body, task, end).await);
            }
            bodies
        });
    }
    tasks.join_all().await.into_iter().sum()
}

/// Runs one body under a permit.
async fn by_permit(manager: LockManager, body: Duration, _: usize, _: Instant) -> bool {
    let request = LockRequest::new(KEY).permits(PERMITS).wait(Duration::from_secs(60));
    let held = manager.acquire(request).await.expect("it comes to its turn");
    work(body).await;
    drop(held);
    true
}

/// Runs one body under the first free key of the numbered keys. Returns `false` if no key is free before the end.
async fn by_number(manager: LockManager, body: Duration, task: usize, end: Instant) -> bool {
    let permits = PERMITS as usize;
    while Instant::now() < end {
        for number in 0..permits {
            let key = format!("{KEY}:{}", (task + number) % permits);
            match manager.try_acquire(LockRequest::new(key).wait(Wait::None)).await {
                Ok(held) => {
                    work(body).await;
                    drop(held);
                    return true;
                }
                Err(LockError::Contended { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        sleep(PAUSE).await;
    }
    false
}

async fn work(body: Duration) {
    if body.is_zero() { yield_now().await } else { sleep(body).await }
}

/// Returns the waits of a call in the second manager.
async fn wait_now_and_then(manager: &LockManager, time: Duration) -> Vec<Duration> {
    let (end, mut waits) = (Instant::now() + time, Vec::new());
    while Instant::now() + APART < end {
        sleep(APART).await;
        let begun = Instant::now();
        let request = LockRequest::new(KEY).permits(PERMITS).wait(Duration::from_secs(60));
        let held = manager.acquire(request).await.expect("it comes in");
        waits.push(begun.elapsed());
        held.release().await.expect("it is held");
    }
    waits
}

/// Writes the tables with these results.
pub(crate) fn table(lines: &[Permits], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let verdict = result_file::verdict;
    writeln!(f, "\nThe next table compares pairs of uncontended exclusive locks with pairs of uncontended permits.\n")?;
    writeln!(f, "| nodes | p50, alone | p50, a permit | ratio | at most {MOST} |")?;
    writeln!(f, "|---:|---:|---:|---:|---|")?;
    for Permits { nodes, alone, permitted, .. } in lines {
        let [alone, permitted] = [alone, permitted].map(|latencies| percentile(latencies, 50));
        let ratio = permitted.as_secs_f64() / alone.as_secs_f64();
        // The goal is for one node only. A permit on several nodes first acquires the admission lock, a lock that admits one
        // call at a time.
        let verdict = if *nodes == 1 { verdict(ratio <= MOST) } else { "" };
        writeln!(f, "| {nodes} | {alone:.1?} | {permitted:.1?} | {ratio:.2} | {verdict} |")?;
    }
    writeln!(
        f,
        "
A permit needs two scripts, one after the other: the script of its admission lock, and its own script. The client sends both to the nodes
at once, so the caller waits for one reply. A permit cost as much as 2.2 locks on one node before this change. The remaining
difference is the work of the server for the second script. If five servers run on two cores, it is the work of all of them."
    )?;
    writeln!(
        f,
        "\n{TASKS} tasks of one manager run bodies again and again, at most {PERMITS} at a time. The table compares the bodies per second of two"
    )?;
    writeln!(
        f,
        "solutions. The first is {PERMITS} numbered keys: each task tries them in turn, and pauses for {PAUSE:?} if all are locked. The second is permits."
    )?;
    writeln!(
        f,
        "During the run with permits, another manager acquires a permit, and pauses for {APART:?} between two permits. The table shows how long \
         it waits, and how many bodies fit into that time."
    )?;
    writeln!(
        f,
        "Bodies of 5 ms allow at most 1000 per second with any solution. The commands include those inside scripts.\n"
    )?;
    writeln!(
        f,
        "| nodes | body | numbered keys | permits | ratio | at least {LEAST} | commands for each body | p50 of the wait | p99 | bodies, p50 | at most {LONGEST_WAIT} |"
    )?;
    writeln!(f, "|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|---|")?;
    for Permits { nodes, crowds, .. } in lines {
        crowds.iter().try_for_each(|crowd| crowd.write(*nodes, f))?;
    }
    Ok(())
}

impl Crowd {
    fn write(&self, nodes: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { body, numbered, passed, commands, waits } = self;
        let ratio = passed / numbered;
        let (median, longest) = (percentile(waits, 50), percentile(waits, 99));
        let verdict = result_file::verdict;
        // The length of the bodies limits the rate, so the comparison with numbered keys has no goal.
        let is_bound = !body.is_zero();
        let reached = if is_bound { "" } else { verdict(ratio >= LEAST) };
        write!(f, "| {nodes} | {body:?} | {numbered:.0} | {passed:.0} | {ratio:.1} | {reached} | {commands:.2} |")?;
        write!(f, " {median:.1?} | {longest:.1?} |")?;
        if is_bound {
            let bodies = median.as_secs_f64() / body.as_secs_f64();
            writeln!(f, " {bodies:.2} | {} |", verdict(bodies <= LONGEST_WAIT))
        } else {
            writeln!(f, " | |")
        }
    }
}
