//! Permits that are free, beside locks that are not shared, and many calls of one process for few permits.

use crate::percentile::percentile;
use crate::result_file;
use redlock_runtime::{LockError, LockManager, LockRequest, Wait};
use redlock_tests::Nodes;
use std::fmt;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

const TASKS: usize = 500;
const PERMITS: u32 = 5;
const KEY: &str = "bench:permits";
/// What a call does with its permit. Much shorter, and tokio's timers are measured, which count whole milliseconds.
const BODY: Duration = Duration::from_millis(5);
/// How long whoever has found all numbered keys taken leaves them alone.
const PAUSE: Duration = Duration::from_millis(10);
/// How long the waiter of the other process leaves the permits alone.
const APART: Duration = Duration::from_millis(100);

/// What a free permit may cost in locks that are not shared, at one node.
const MOST: f64 = 1.2;
/// So many times as many bodies as by numbered keys.
const LEAST: f64 = 5.0;
/// In bodies.
const LONGEST_WAIT: f64 = 2.0;

/// One line of each table.
pub(crate) struct Permits {
    nodes: usize,
    alone: Vec<Duration>,
    permitted: Vec<Duration>,
    numbered: f64,
    passed: f64,
    /// Of all commands at one node, for each body.
    commands: f64,
    waits: Vec<Duration>,
}

impl Permits {
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer")]
    pub(crate) async fn measure(servers: &Nodes, turns: usize, time: Duration) -> Self {
        let (ours, theirs) = (crate::manager(&servers.urls()).await, crate::manager(&servers.urls()).await);
        let (mut alone, mut permitted) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            pairs(&ours, || LockRequest::new("bench:alone"), &mut alone).await;
            pairs(&ours, || LockRequest::new("bench:free").permits(PERMITS), &mut permitted).await;
        }
        let by_numbers = run(&ours, time, by_number).await;
        // The channels stand from here on, as in a process that runs for a while.
        run(&ours, time / 10, by_permit).await;
        let before = servers.commands_processed().await;
        let (by_permits, waits) = tokio::join!(run(&ours, time, by_permit), wait_now_and_then(&theirs, time));
        let after = servers.commands_processed().await;
        let commands = (after - before) as f64 / servers.len() as f64 / by_permits as f64;
        let rate = |bodies: usize| bodies as f64 / time.as_secs_f64();
        let (numbered, passed) = (rate(by_numbers), rate(by_permits));
        Self { nodes: servers.len(), alone, permitted, numbered, passed, commands, waits }
    }
}

/// Adds the pairs of a tenth of a second.
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

/// How many bodies run in that time, of so many tasks that do nothing else.
async fn run<F>(manager: &LockManager, time: Duration, body: fn(LockManager, usize, Instant) -> F) -> usize
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
                bodies += usize::from(body(manager.clone(), task, end).await);
            }
            bodies
        });
    }
    tasks.join_all().await.into_iter().sum()
}

/// One body under a permit.
async fn by_permit(manager: LockManager, _: usize, _: Instant) -> bool {
    let request = LockRequest::new(KEY).permits(PERMITS).wait(Duration::from_secs(60));
    let held = manager.acquire(request).await.expect("it comes to its turn");
    sleep(BODY).await;
    drop(held);
    true
}

/// One body under the first of so many keys that is free, tried in turn until then, or until the end.
async fn by_number(manager: LockManager, task: usize, end: Instant) -> bool {
    let permits = PERMITS as usize;
    while Instant::now() < end {
        for number in 0..permits {
            let key = format!("{KEY}:{}", (task + number) % permits);
            match manager.try_acquire(LockRequest::new(key).wait(Wait::None)).await {
                Ok(held) => {
                    sleep(BODY).await;
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

/// How long a call of another process waits each time.
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

/// The tables with these lines.
pub(crate) fn table(lines: &[Permits], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let verdict = result_file::verdict;
    writeln!(f, "\nPairs of locks that are not shared, and of permits, which nobody else wants.\n")?;
    writeln!(f, "| nodes | p50, alone | p50, a permit | ratio | at most {MOST} |")?;
    writeln!(f, "|---:|---:|---:|---:|---|")?;
    for Permits { nodes, alone, permitted, .. } in lines {
        let [alone, permitted] = [alone, permitted].map(|latencies| percentile(latencies, 50));
        let ratio = permitted.as_secs_f64() / alone.as_secs_f64();
        // With more nodes, the turnstile is taken first.
        let verdict = if *nodes == 1 { verdict(ratio <= MOST) } else { "" };
        writeln!(f, "| {nodes} | {alone:.1?} | {permitted:.1?} | {ratio:.2} | {verdict} |")?;
    }
    writeln!(
        f,
        "\n{TASKS} tasks of one manager, of which {PERMITS} may be in a body of {BODY:?} at a time, again and again: bodies in a second, by"
    )?;
    writeln!(
        f,
        "{PERMITS} numbered keys that each task tries in turn, with a pause of {PAUSE:?} when all are taken, and by permits, with a waiter of"
    )?;
    writeln!(f, "another manager {APART:?} after the one before: how many bodies it waits.\n")?;
    writeln!(
        f,
        "| nodes | numbered keys | permits | ratio | at least {LEAST} | commands for each body | p50 of the wait, in bodies | p99 | at most {LONGEST_WAIT} |"
    )?;
    writeln!(f, "|---:|---:|---:|---:|---|---:|---:|---:|---|")?;
    for Permits { nodes, numbered, passed, commands, waits, .. } in lines {
        let ratio = passed / numbered;
        let bodies = |percent| percentile(waits, percent).as_secs_f64() / BODY.as_secs_f64();
        let (median, most) = (bodies(50), bodies(99));
        write!(f, "| {nodes} | {numbered:.0} | {passed:.0} | {ratio:.1} | {} |", verdict(ratio >= LEAST))?;
        writeln!(f, " {commands:.2} | {median:.2} | {most:.2} | {} |", verdict(median <= LONGEST_WAIT))?;
    }
    Ok(())
}
