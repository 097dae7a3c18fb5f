//! A client that is suspended for longer than its lease (defects 11 and 14 of peers).

use crate::support::{BRIEF, builder};
use redlock_runtime::{FencedGuard, FencedSet, LockError, LockManager, LockRequest, LossCause};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually_eq};
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::process::Command;
use tokio::time::sleep;

const URLS: &str = "REDLOCK_TESTS_PAUSED_URLS";
const KEY: &str = "order:7";
/// Short enough to wait for its end, and long enough that a renewed lock survives a pause of one second.
const TTL: Duration = Duration::from_secs(2);
const STATE: &str = "state";
const FENCE: &str = "fence";

async fn client(urls: impl IntoIterator<Item = String>) -> LockManager {
    let manager = builder(urls).node_timeout(BRIEF).default_ttl(TTL).build().unwrap();
    manager.ready().await.unwrap();
    manager
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

/// Writes with its token as often as it can, and prints each time.
async fn write_on(url: &str, guard: &FencedGuard) -> Result<(), LockError> {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let token = guard.fencing_token().to_string();
    loop {
        let mut write = redis::cmd("EVAL");
        write.arg(FencedSet::SCRIPT).arg(2).arg(STATE).arg(FENCE).arg(&token).arg("suspended");
        write.exec_async(&mut connection).await.unwrap();
        println!("step {}", now_ms());
        sleep(Duration::from_millis(1)).await;
    }
}

/// Holds the lock until it is lost, in the second process.
async fn hold_until_lost(urls: &str) {
    let urls: Vec<_> = urls.split(',').map(str::to_owned).collect();
    let manager = client(urls.clone()).await;
    let body = async |guard: &FencedGuard| write_on(&urls[0], guard).await;
    match manager.with_lock(LockRequest::new(KEY).fencing(), body).await {
        Err(LockError::Lost { cause: LossCause::NotRenewed { .. } | LossCause::Taken, .. }) => println!("lost"),
        other => panic!("{other:?}"),
    }
    assert!(manager.shutdown().await);
}

async fn write(node: &RedisServer, token: &str, value: &str) -> i64 {
    node.inspect().command(&["EVAL", FencedSet::SCRIPT, "2", STATE, FENCE, token, value]).await
}

#[tokio::test]
async fn suspended_body_stops_after_the_resume_and_its_late_write_is_rejected() {
    if let Ok(urls) = env::var(URLS) {
        return hold_until_lost(&urls).await;
    }
    let nodes = Nodes::start(3).await;
    let mut second = Command::new(env::current_exe().unwrap());
    let name = "paused::suspended_body_stops_after_the_resume_and_its_late_write_is_rejected";
    second.args(["--exact", "--nocapture", name]).env(URLS, nodes.urls().join(","));
    let second = second.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let pid = Pid::from_raw(second.id().unwrap().try_into().unwrap()).unwrap();
    let written = async || nodes[0].inspect().get(STATE).await;
    eventually_eq(PATIENCE, "it writes", Some("suspended".to_owned()), written).await;
    let old_token = nodes[0].inspect().get(FENCE).await.unwrap();

    kill_process(pid, Signal::STOP).unwrap();
    let manager = client(nodes.urls()).await;
    let guard = manager.acquire(LockRequest::new(KEY).wait(PATIENCE).fencing()).await.unwrap();
    assert_eq!(write(&nodes[0], &guard.fencing_token().to_string(), "next").await, 1);
    sleep(2 * TTL).await;
    let resumed = now_ms();
    kill_process(pid, Signal::CONT).unwrap();

    let output = tokio::time::timeout(PATIENCE, second.wait_with_output()).await.unwrap().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.lines().any(|line| line == "lost"), "{printed}");
    let steps = printed.lines().filter_map(|line| line.strip_prefix("step ")?.parse::<u128>().ok());
    let late = steps.filter(|at| *at > resumed).count();
    assert!(late <= 1, "{late} steps after the resume: up to the next await, and no further");
    assert_eq!(write(&nodes[0], &old_token, "stale").await, 0, "the token of the suspended writer is too old");
    assert_eq!(nodes[0].inspect().get(STATE).await.as_deref(), Some("next"), "nor did a late write of its own get in");
    guard.ensure_held().unwrap();
    guard.release().await.unwrap();
}
