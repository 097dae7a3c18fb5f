//! Permits and exclusive locks of the same key. Measures the wait for a permit, and the number of bodies.

use crate::percentile::percentile;
use crate::result_file::verdict;
use redlock_runtime::{LockManager, LockRequest};
use redlock_tests::Nodes;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

const KEY: &str = "bench:beside";
const ANOTHER_KEY: &str = "bench:apart";
/// Tasks that hold the key exclusively, the duration of each hold, and the pause after it.
const WRITERS: usize = 3;
const WRITING: Duration = Duration::from_millis(3);
const RESTING: Duration = Duration::from_millis(20);
/// Pause before each measured wait.
const APART: Duration = Duration::from_millis(30);
/// Tasks that acquire permits without a pause, the number of permits, and the length of a body.
const TASKS: usize = 8;
const PERMITS: u32 = 4;
const BODY: Duration = Duration::from_millis(1);
/// Duration of one turn of each measurement.
const TURN: Duration = Duration::from_millis(1500);

/// Maximum of the mean wait for a permit, as a multiple of the mean wait of a shared call.
const MOST: f64 = 3.0;
/// Minimum number of bodies with exclusive calls for the same key, as a fraction of the number with exclusive calls for
/// another key.
const LEAST: f64 = 2.0 / 3.0;

/// Results of all turns.
pub(crate) struct Beside {
    nodes: usize,
    shared: Vec<Duration>,
    permitted: Vec<Duration>,
    another_key: usize,
    same_key: usize,
}

impl Beside {
    pub(crate) async fn measure(servers: &Nodes, turns: usize) -> Self {
        let (ours, theirs) = (crate::manager(&servers.urls()).await, crate::manager(&servers.urls()).await);
        let (mut shared, mut permitted, mut another_key, mut same_key) = (Vec::new(), Vec::new(), 0, 0);
        for _ in 0..turns {
            waits(&ours, &theirs, LockRequest::shared(KEY), &mut shared).await;
            waits(&ours, &theirs, LockRequest::new(KEY).permits(1), &mut permitted).await;
            another_key += bodies(&ours, &theirs, ANOTHER_KEY).await;
            same_key += bodies(&ours, &theirs, KEY).await;
        }
        Self { nodes: servers.len(), shared, permitted, another_key, same_key }
    }
}

/// Tasks that run until they are stopped.
struct Writers {
    is_over: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Writers {
    fn start(manager: &LockManager, key: &'static str, (many, body): (usize, Duration)) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let task = |_| {
            let (manager, is_over) = (manager.clone(), Arc::clone(&is_over));
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let held = manager.acquire(patient(LockRequest::new(key))).await.expect("it comes to its turn");
                    if !body.is_zero() {
                        sleep(body).await;
                    }
                    drop(held);
                    sleep(RESTING).await;
                }
            })
        };
        Self { tasks: (0..many).map(task).collect(), is_over }
    }

    async fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("it does not panic");
        }
    }
}

fn patient(request: LockRequest) -> LockRequest {
    request.wait(Duration::from_secs(60))
}

/// Measures the waits of one turn and adds them to `waits`.
async fn waits(ours: &LockManager, theirs: &LockManager, request: LockRequest, waits: &mut Vec<Duration>) {
    let (writers, end) = (Writers::start(theirs, KEY, (WRITERS, WRITING)), Instant::now() + TURN);
    while Instant::now() < end {
        sleep(APART).await;
        let begun = Instant::now();
        let held = ours.acquire(patient(request.clone())).await.expect("it comes to its turn");
        waits.push(begun.elapsed());
        drop(held);
    }
    writers.stop().await;
}

/// Returns the number of bodies that run under permits in one turn, with concurrent exclusive calls for `key`.
async fn bodies(ours: &LockManager, theirs: &LockManager, key: &'static str) -> usize {
    let (writer, end) = (Writers::start(theirs, key, (1, Duration::ZERO)), Instant::now() + TURN);
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let manager = ours.clone();
        tasks.spawn(async move {
            let mut bodies = 0;
            while Instant::now() < end {
                let request = patient(LockRequest::new(KEY).permits(PERMITS));
                let held = manager.acquire(request).await.expect("it comes to its turn");
                sleep(BODY).await;
                drop(held);
                bodies += 1;
            }
            bodies
        });
    }
    let bodies = tasks.join_all().await.into_iter().sum();
    writer.stop().await;
    bodies
}

/// Tables with these results.
pub(crate) struct Tables<'a>(pub(crate) &'a [Beside]);

impl fmt::Display for Tables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        table(self.0, f)
    }
}

fn table(lines: &[Beside], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "\n{WRITERS} tasks of another manager hold a key exclusively for {WRITING:?} and rest {RESTING:?}: how long a call waits \
         for a share of the key, and for a permit.\n"
    )?;
    writeln!(f, "| nodes | mean, shared | p99 | mean, a permit | p99 | ratio of the means | at most {MOST} |")?;
    writeln!(f, "|---:|---:|---:|---:|---:|---:|---|")?;
    for Beside { nodes, shared, permitted, .. } in lines {
        let ([share, permit], [long_share, long_permit]) =
            ([shared, permitted].map(|waits| mean(waits)), [shared, permitted].map(|waits| percentile(waits, 99)));
        let ratio = permit.as_secs_f64() / share.as_secs_f64();
        let verdict = verdict(ratio <= MOST);
        writeln!(
            f,
            "| {nodes} | {share:.1?} | {long_share:.1?} | {permit:.1?} | {long_permit:.1?} | {ratio:.2} | {verdict} |"
        )?;
    }
    writeln!(
        f,
        "\n{TASKS} tasks want one of {PERMITS} permits all the time, for {BODY:?}, beside an exclusive call of another manager every \
         {RESTING:?}: how many bodies run in the same time if that call is for another key, and if it is for the same key.\n"
    )?;
    writeln!(f, "| nodes | another key | the same key | ratio | at least {LEAST:.2} |")?;
    writeln!(f, "|---:|---:|---:|---:|---|")?;
    for Beside { nodes, another_key, same_key, .. } in lines {
        let ratio = *same_key as f64 / *another_key as f64;
        writeln!(f, "| {nodes} | {another_key} | {same_key} | {ratio:.2} | {} |", verdict(ratio >= LEAST))?;
    }
    Ok(())
}

fn mean(waits: &[Duration]) -> Duration {
    waits.iter().sum::<Duration>() / u32::try_from(waits.len().max(1)).unwrap_or(u32::MAX)
}
