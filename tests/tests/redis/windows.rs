//! Jobs that run once in each window of time, over servers whose clocks differ.

use crate::support::{builder, connected};
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const KEY: &str = "report";
/// Period of the jobs. Too short: on a busy machine, a tick that is late by a second falls into the next window. Too long: slow tests.
const PERIOD: Duration = Duration::from_secs(4);
/// Variable with the number of windows for each kind of ticks.
const WINDOWS: &str = "REDLOCK_WINDOWS";
/// Number of jobs that tick together, so that many windows take little time.
const JOBS: usize = 20;

/// Times at which three processes tick, in milliseconds after a full period, and the random deviation of each tick.
#[derive(Clone, Copy)]
struct Ticks {
    name: &'static str,
    offsets: [i64; 3],
    jitter: i64,
}

const TICKS: [Ticks; 4] = [
    Ticks { name: "around", offsets: [-200, 0, 200], jitter: 0 },
    Ticks { name: "ahead", offsets: [-200, -150, -100], jitter: 20 },
    Ticks { name: "behind", offsets: [100, 150, 200], jitter: 20 },
    Ticks { name: "at-once", offsets: [0, 0, 0], jitter: 10 },
];

fn request() -> LockRequest {
    LockRequest::new(KEY).once_per(PERIOD)
}

/// Starts servers with three clocks: one is right, one ahead and one behind.
async fn three_clocks() -> Nodes {
    let nodes = Nodes::start_with(3, |_, builder| builder.own_clock()).await;
    nodes[1].set_clock_millis(50);
    nodes[2].set_clock_millis(-50);
    nodes
}

/// Returns the number of windows that follow one another.
fn rounds() -> usize {
    let windows = std::env::var(WINDOWS).map_or(3 * JOBS, |windows| windows.parse().unwrap());
    windows.div_ceil(JOBS)
}

/// Returns the full period after the next one, since 1970 by our clock.
fn next_period() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let period = PERIOD.as_millis();
    Duration::from_millis(u64::try_from((now / period + 2) * period).unwrap())
}

/// Waits until our clock shows `time` plus `millis`.
async fn until(time: Duration, millis: i64) {
    let time = Duration::from_millis(u64::try_from(time.as_millis()).unwrap().saturating_add_signed(millis));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    tokio::time::sleep(time.saturating_sub(now)).await;
}

/// Returns `true` if this call ran the job of its window.
async fn tick(manager: &LockManager, key: &str) -> bool {
    match manager.acquire(LockRequest::new(key).once_per(PERIOD)).await {
        Ok(_) => true,
        Err(LockError::WindowTaken { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Ticks in one process for one job, from `first` on. Returns for each tick if the job ran.
async fn ticks(manager: LockManager, key: String, first: Duration, offset: i64, jitter: i64) -> Vec<bool> {
    let (mut time, mut has_run) = (first, Vec::new());
    let mut random = DefaultHasher::new();
    (&key, offset).hash(&mut random);
    for round in 0..rounds() {
        random.write_usize(round);
        let width = u64::try_from(2 * jitter + 1).unwrap();
        let off = i64::try_from(random.finish() % width).unwrap() - jitter;
        until(time, offset + off).await;
        has_run.push(tick(&manager, &key).await);
        time += PERIOD;
    }
    has_run
}

/// `REDLOCK_WINDOWS=1000` checks a thousand windows for each kind of ticks, in less than four minutes.
#[tokio::test]
async fn each_window_runs_once_for_any_tick_times_of_three_processes() {
    let nodes = three_clocks().await;
    let mut managers = Vec::new();
    for _ in 0..3 {
        managers.push(connected(builder(nodes.urls()), &nodes).await);
    }
    let (first, mut jobs) = (next_period(), Vec::new());
    for (Ticks { name, offsets, jitter }, job) in TICKS.iter().flat_map(|ticks| (0..JOBS).map(move |job| (*ticks, job)))
    {
        let key = format!("{KEY}-{name}-{job}");
        let processes = managers.iter().cloned().zip(offsets);
        let processes =
            processes.map(|(manager, offset)| tokio::spawn(ticks(manager, key.clone(), first, offset, jitter)));
        jobs.push((key.clone(), processes.collect::<Vec<_>>()));
    }
    let mut not_once = Vec::new();
    for (key, processes) in jobs {
        let mut runs = vec![0; rounds()];
        for process in processes {
            let has_run = process.await.unwrap();
            runs.iter_mut().zip(has_run).for_each(|(runs, has_run)| *runs += u32::from(has_run));
        }
        not_once
            .extend(runs.iter().enumerate().filter(|(_, runs)| **runs != 1).map(|(i, runs)| (key.clone(), i, *runs)));
    }
    assert!(not_once.is_empty(), "job, window, runs: {not_once:?}");
}

#[tokio::test]
async fn simultaneous_calls_take_a_window_once() {
    let nodes = Nodes::start(3).await;
    let mut managers = Vec::new();
    for _ in 0..5 {
        managers.push(connected(builder(nodes.urls()), &nodes).await);
    }
    // Long enough that no window ends meanwhile, unless the test begins just then.
    let request = || LockRequest::new(KEY).once_per(Duration::from_secs(24 * 3600));
    let calls: Vec<_> = managers
        .iter()
        .cloned()
        .map(|manager| tokio::spawn(async move { manager.acquire(request()).await.map(drop) }))
        .collect();
    let mut runs = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(()) => runs += 1,
            Err(error) => assert!(matches!(error, LockError::WindowTaken { .. }), "{error}"),
        }
    }
    assert_eq!(runs, 1);
    // The key outlives the window by a period, at a majority. One node may have granted another call until it was too late.
    eventually(PATIENCE, "a majority keeps the window", async || {
        let mut kept = 0;
        for node in nodes.iter() {
            if let [name] = &node.inspect().keys().await[..] {
                let left = node.inspect().command::<i64>(&["PTTL", name]).await;
                kept += usize::from((24 * 3_600_000..=48 * 3_600_000).contains(&left));
            }
        }
        if kept >= 2 { Ok(()) } else { Err(kept) }
    })
    .await;
}

#[tokio::test]
async fn reopened_window_is_run_by_another_process() {
    let nodes = Nodes::start(3).await;
    let [first, second] =
        [connected(builder(nodes.urls()), &nodes).await, connected(builder(nodes.urls()), &nodes).await];
    // A window that has just begun, so that it lasts until the end of the test.
    let minute = Duration::from_secs(60);
    let second_of_minute = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() % minute.as_secs();
    let request = || LockRequest::new(KEY).once_per(minute).window_start(Duration::from_secs(second_of_minute));
    let failed = first.acquire(request()).await.unwrap();
    failed.reopen_window();
    failed.release().await.unwrap();
    nodes.assert_empty(PATIENCE).await;
    second.acquire(request()).await.unwrap().release().await.unwrap();
    // At a majority, for the reason above.
    eventually(PATIENCE, "the window stays taken", async || {
        let mut kept = 0;
        for node in nodes.iter() {
            kept += node.inspect().keys().await.len();
        }
        if kept >= 2 { Ok(()) } else { Err(kept) }
    })
    .await;
}

#[tokio::test]
async fn window_needs_a_majority_of_clocks() {
    let nodes = Nodes::start(3).await;
    let manager = connected(builder(nodes.urls()), &nodes).await;
    nodes[1].freeze();
    nodes[2].kill();
    let error = manager.acquire(request()).await.unwrap_err();
    assert!(matches!(error, LockError::NoQuorum { .. }), "{error}");
    assert!(nodes[0].inspect().keys().await.is_empty());
    nodes[1].thaw();
    manager.acquire(request()).await.unwrap().release().await.unwrap();
}
