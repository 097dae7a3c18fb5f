//! A waiter for several keys does not block others after it has left, in any way.

use super::{TTL, all, brief};
use crate::support::{BRIEF, SIZES, acquired_everywhere, builder, wait_until_queued};
use crate::waiters::{Waiting, assert_all_gone, cancelled, managers, obtained, patient, waiting};
use redlock_runtime::{LockError, LockGuard, LockManager};
use redlock_tests::{Nodes, PATIENCE};
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::sleep;

/// Variable with the addresses of the nodes, for the second process.
const TOLD: &str = "REDLOCK_TESTS_SETS";

/// Scene in which `b` is held, and another call will wait for `a` and `b`.
struct Scene {
    nodes: Nodes,
    holder: LockManager,
    behind: LockManager,
    held: LockGuard,
}

impl Scene {
    async fn begin(size: usize) -> Self {
        let nodes = Nodes::start(size).await;
        let [holder, behind] = managers(&nodes, 2).await.try_into().unwrap();
        let held = acquired_everywhere(&holder, &nodes, "b").await;
        Self { nodes, holder, behind, held }
    }

    /// Starts a call for `a` behind the waiter for both keys.
    async fn behind(&self) -> Waiting {
        wait_until_queued(&self.nodes, "a", 1).await;
        let call = waiting(&self.behind, patient("a"));
        wait_until_queued(&self.nodes, "a", 2).await;
        call
    }

    /// Checks that the call behind is admitted while `b` is still held.
    async fn end(self, behind: Waiting) {
        let guard = obtained(behind).await;
        assert!(self.held.is_held());
        drop((guard, self.held));
        assert_all_gone(&self.holder, &self.nodes).await;
        assert_all_gone(&self.behind, &self.nodes).await;
    }
}

#[tokio::test]
async fn timed_out_or_dropped_call_for_several_keys_frees_later_waiters() {
    for size in SIZES {
        for is_dropped in [false, true] {
            let scene = Scene::begin(size).await;
            let wait = if is_dropped { PATIENCE } else { Duration::from_secs(2) };
            let call = waiting(&scene.holder, all(["a", "b"]).wait(wait));
            let behind = scene.behind().await;
            if is_dropped {
                cancelled(call).await;
            } else {
                let error = call.await.unwrap().unwrap_err();
                assert!(matches!(error, LockError::TimedOut { .. }), "{error:?}");
            }
            scene.end(behind).await;
        }
    }
}

/// Starts the test called `test` in a separate process, where it only runs [`second_process`].
fn process(test: &str, nodes: &Nodes) -> Child {
    let mut process = Command::new(env::current_exe().unwrap());
    process.args(["--exact", test]).env(TOLD, nodes.urls().join(","));
    process.stdout(Stdio::null()).kill_on_drop(true).spawn().unwrap()
}

/// Acquires both keys and keeps them until the process is killed, if this is the second process of a test.
async fn second_process() {
    let Ok(urls) = env::var(TOLD) else { return };
    let manager = builder(urls.split(',')).node_timeout(BRIEF).default_ttl(TTL).build().unwrap();
    let _guard = manager.acquire(all(["a", "b"])).await;
    sleep(3 * PATIENCE).await;
}

fn is_second_process() -> bool {
    env::var(TOLD).is_ok()
}

#[tokio::test]
async fn killed_or_suspended_waiter_for_several_keys_is_skipped() {
    if is_second_process() {
        return second_process().await;
    }
    for (size, signal) in [(1, Signal::KILL), (3, Signal::KILL), (1, Signal::STOP), (3, Signal::STOP)] {
        let scene = Scene::begin(size).await;
        let child = process("sets::leaving::killed_or_suspended_waiter_for_several_keys_is_skipped", &scene.nodes);
        wait_until_queued(&scene.nodes, "a", 1).await;
        let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let behind = waiting(&scene.behind, patient("a"));
        let guard = obtained(behind).await;
        assert!(scene.held.is_held());
        drop((guard, scene.held, child));
        // The traces of the process expire by themselves.
        let [holder, behind] = [scene.holder, scene.behind];
        for key in ["a", "b"] {
            holder.acquire(patient(key)).await.unwrap().release().await.unwrap();
        }
        assert!(holder.shutdown().await && behind.shutdown().await);
    }
}

#[tokio::test]
async fn waiters_acquire_after_the_leases_of_a_killed_holder() {
    if is_second_process() {
        return second_process().await;
    }
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let manager = brief(&nodes).await;
        let mut child = process("sets::leaving::waiters_acquire_after_the_leases_of_a_killed_holder", &nodes);
        let mut is_held = false;
        while !is_held {
            is_held = nodes[0].inspect().get("b").await.is_some();
        }
        let calls = [waiting(&manager, all(["b", "c"])), waiting(&manager, patient("a"))];
        child.kill().await.unwrap();
        for call in calls {
            obtained(call).await.release().await.unwrap();
        }
        assert_all_gone(&manager, &nodes).await;
    }
}
