//! Locks that readers share, and that a writer holds exclusively.

mod attached;
mod downgrade;
mod faults;
mod full;
mod inspecting;
mod joined;
mod leases;
mod leaving;
mod memory;
mod order;
mod permissions;
mod storm;
mod together;

use crate::support::{BRIEF, builder, connected};
use crate::waiters::patient;
use redlock_runtime::{LockError, LockManager, LockRequest, LossCause};
use redlock_tests::{Nodes, PATIENCE};
use std::env;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::sleep;

const KEY: &str = "config";

/// Short enough to wait for its end, and long enough that a renewed lock survives a pause of one second.
const TTL: Duration = Duration::from_secs(2);

/// Variable for the second process: its role, reader or writer, and the addresses of the nodes.
const TOLD: &str = "REDLOCK_TESTS_SHARED";

/// Request for a share, which waits as long as the harness does.
fn reader() -> LockRequest {
    patient(KEY).mode(redlock_runtime::Mode::Shared)
}

/// Exclusive request, which waits as long as the harness does.
fn writer() -> LockRequest {
    patient(KEY)
}

/// Returns a manager with short leases and short node timeouts.
async fn brief(nodes: &Nodes) -> LockManager {
    connected(builder(nodes.urls()).node_timeout(BRIEF).default_ttl(TTL), nodes).await
}

fn cause(error: LockError) -> LossCause {
    match error {
        LockError::Lost { cause, .. } => cause,
        other => panic!("a lost lock expected: {other:?}"),
    }
}

/// Starts the test called `test` in a separate process, where it only runs [`second_process`].
fn process(test: &str, role: &str, nodes: &Nodes) -> Child {
    let mut process = Command::new(env::current_exe().unwrap());
    process.args(["--exact", test]).env(TOLD, format!("{role} {}", nodes.urls().join(",")));
    process.stdout(Stdio::null()).kill_on_drop(true).spawn().unwrap()
}

/// Acquires the lock in its role and keeps it until the process is killed, if this is the second process of a test.
async fn second_process() {
    let Ok(told) = env::var(TOLD) else { return };
    let (role, urls) = told.split_once(' ').unwrap();
    let manager = builder(urls.split(',')).node_timeout(BRIEF).default_ttl(TTL).build().unwrap();
    let _guard = manager.acquire(if role == "reader" { reader() } else { writer() }).await;
    sleep(3 * PATIENCE).await;
}
