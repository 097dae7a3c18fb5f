//! Locks that readers share and a writer has alone.

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

/// What a second process is told: to read or to write, and the addresses of the nodes.
const TOLD: &str = "REDLOCK_TESTS_SHARED";

/// A call for a share, which waits for as long as the harness has patience.
fn reader() -> LockRequest {
    patient(KEY).mode(redlock_runtime::Mode::Shared)
}

/// A call for the lock, which waits for as long.
fn writer() -> LockRequest {
    patient(KEY)
}

/// Short leases on servers that answer soon.
async fn brief(nodes: &Nodes) -> LockManager {
    connected(builder(nodes.urls()).node_timeout(BRIEF).default_ttl(TTL), nodes).await
}

fn cause(error: LockError) -> LossCause {
    match error {
        LockError::Lost { cause, .. } => cause,
        other => panic!("a lost lock expected: {other:?}"),
    }
}

/// The test that is called `test`, in a process of its own, where it gets no further than [`second_process`].
fn process(test: &str, role: &str, nodes: &Nodes) -> Child {
    let mut process = Command::new(env::current_exe().unwrap());
    process.args(["--exact", test]).env(TOLD, format!("{role} {}", nodes.urls().join(",")));
    process.stdout(Stdio::null()).kill_on_drop(true).spawn().unwrap()
}

/// Takes the lock as it is told and keeps it until it is killed, if this is the second process of a test.
async fn second_process() {
    let Ok(told) = env::var(TOLD) else { return };
    let (role, urls) = told.split_once(' ').unwrap();
    let manager = builder(urls.split(',')).node_timeout(BRIEF).default_ttl(TTL).build().unwrap();
    let _guard = manager.acquire(if role == "reader" { reader() } else { writer() }).await;
    sleep(3 * PATIENCE).await;
}
