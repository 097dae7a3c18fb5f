//! Jobs that run once in each window of time, over servers whose clocks differ.

use crate::support::{builder, connected};
use redlock_runtime::{LockError, LockManager, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually_eq};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const KEY: &str = "report";
const PERIOD: Duration = Duration::from_secs(2);
/// When each of three processes does its work in every window, after it has begun.
const OFFSETS: [u64; 3] = [800, 1000, 1200];
const WINDOWS: u32 = 3;

fn request() -> LockRequest {
    LockRequest::new(KEY).once_per(PERIOD)
}

/// One clock is right, one ahead and one behind.
async fn three_clocks() -> Nodes {
    let nodes = Nodes::start_with(3, |_, builder| builder.own_clock()).await;
    nodes[1].set_clock_millis(50);
    nodes[2].set_clock_millis(-50);
    nodes
}

/// Until `millis` after the beginning of the next window by our clock.
async fn next_tick(millis: u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let since_beginning = (now + PERIOD / 2).as_millis() % PERIOD.as_millis();
    let left = PERIOD.saturating_sub(Duration::from_millis(u64::try_from(since_beginning).unwrap()));
    tokio::time::sleep(left + Duration::from_millis(millis)).await;
}

/// The window of a call, and whether it has run.
async fn tick(manager: &LockManager) -> (i64, bool) {
    match manager.acquire(request()).await {
        Ok(guard) => (guard.key().as_str().strip_prefix("report@").unwrap().parse().unwrap(), true),
        Err(LockError::WindowTaken { window, .. }) => (window, false),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn each_window_that_is_asked_for_is_run_once() {
    let nodes = three_clocks().await;
    let mut processes = Vec::new();
    for offset in OFFSETS {
        let manager = connected(builder(nodes.urls()), &nodes).await;
        processes.push(tokio::spawn(async move {
            let mut ticks = Vec::new();
            for _ in 0..WINDOWS {
                next_tick(offset).await;
                ticks.push(tick(&manager).await);
            }
            ticks
        }));
    }
    let (mut asked, mut runs) = (BTreeSet::new(), BTreeMap::<i64, u32>::new());
    for process in processes {
        for (window, has_run) in process.await.unwrap() {
            asked.insert(window);
            *runs.entry(window).or_default() += u32::from(has_run);
        }
    }
    let once: BTreeMap<_, _> = asked.into_iter().map(|window| (window, 1)).collect();
    assert_eq!(runs, once);
}

#[tokio::test]
async fn calls_of_the_same_moment_leave_the_window_to_one_of_them() {
    let nodes = Nodes::start(3).await;
    let mut managers = Vec::new();
    for _ in 0..5 {
        managers.push(connected(builder(nodes.urls()), &nodes).await);
    }
    // Long enough that no window ends meanwhile, unless this begins just then.
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
    // The key outlives the window by a period.
    let (name, node) = (nodes[0].inspect().keys().await, &nodes[0]);
    let [name] = &name[..] else { panic!("one key expected: {name:?}") };
    let left = node.inspect().command::<i64>(&["PTTL", name]).await;
    assert!((24 * 3_600_000..=48 * 3_600_000).contains(&left), "{name}: {left}");
}

#[tokio::test]
async fn a_window_that_is_given_back_is_run_elsewhere() {
    let nodes = Nodes::start(3).await;
    let [first, second] =
        [connected(builder(nodes.urls()), &nodes).await, connected(builder(nodes.urls()), &nodes).await];
    let failed = first.acquire(request()).await.unwrap();
    failed.give_back_window();
    failed.release().await.unwrap();
    nodes.assert_empty(PATIENCE).await;
    second.acquire(request()).await.unwrap().release().await.unwrap();
    eventually_eq(PATIENCE, "the window stays taken", 1, async || nodes[0].inspect().keys().await.len()).await;
}

#[tokio::test]
async fn no_window_is_taken_by_fewer_clocks_than_a_majority() {
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
