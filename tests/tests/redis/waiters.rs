//! Waiting calls, each in a separate task, and the cost of serving them.

use crate::support::{assert_nothing_left, manager, wait_until_queued};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use redlock_tests::{Inspector, Nodes, PATIENCE, eventually_eq};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

pub(crate) type Waiting = JoinHandle<Result<LockGuard, LockError>>;

/// Starts a call for `request`. It waits as long as the harness does, unless the request has its own limit.
pub(crate) fn waiting(manager: &LockManager, request: impl Into<LockRequest>) -> Waiting {
    let (manager, request) = (manager.clone(), request.into());
    tokio::spawn(async move { manager.acquire(request).await })
}

pub(crate) fn patient(key: &str) -> LockRequest {
    LockRequest::new(key).wait(PATIENCE)
}

/// Returns managers that are connected to every node.
pub(crate) async fn managers(nodes: &Nodes, many: usize) -> Vec<LockManager> {
    let mut managers = Vec::with_capacity(many);
    for _ in 0..many {
        managers.push(manager(nodes).await);
    }
    managers
}

/// Starts one call of each manager, in the queue on every node in this order, behind the present holder.
pub(crate) async fn queue_up(managers: &[LockManager], nodes: &Nodes, key: &str) -> Vec<Waiting> {
    let mut calls = Vec::with_capacity(managers.len());
    for manager in managers {
        calls.push(waiting(manager, patient(key)));
        wait_until_queued(nodes, key, calls.len()).await;
    }
    calls
}

/// Starts `many` calls in the local queue of `manager`, one behind the other.
pub(crate) async fn line_up(manager: &LockManager, key: &str, many: usize) -> Vec<Waiting> {
    let mut calls = Vec::with_capacity(many);
    for _ in 0..many {
        calls.push(waiting(manager, patient(key)));
        // The test has one thread, so the call is queued when this task runs again.
        yield_now().await;
    }
    calls
}

/// Waits until the call has its lock.
pub(crate) async fn obtained(call: Waiting) -> LockGuard {
    let outcome = timeout(PATIENCE, call).await.expect("the lock is passed on");
    outcome.unwrap().unwrap_or_else(|error| panic!("{error}"))
}

/// Drops the call in its present state.
pub(crate) async fn cancelled(call: Waiting) {
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
}

/// Returns the name of the queue of `key`, as the server would list it.
pub(crate) fn queue_of(key: &str) -> String {
    format!("{{{key}}}:q")
}

/// Returns the tokens in the queue, the first one first.
pub(crate) async fn queue(inspect: &Inspector, key: &str) -> Vec<String> {
    let mut members: Vec<String> = inspect.command(&["ZRANGE", &queue_of(key), "0", "-1"]).await;
    // A member with `#` stores when a token was last heard of.
    members.retain(|member| !member.ends_with('#'));
    members
}

/// Waits until no queue for `key` is left on any node.
pub(crate) async fn wait_until_no_queue(nodes: &Nodes, key: &str) {
    for node in nodes.iter() {
        eventually_eq(PATIENCE, "the queue is gone", 0, async || {
            node.inspect().command::<usize>(&["EXISTS", &queue_of(key)]).await
        })
        .await;
    }
}

/// Resets the counts.
pub(crate) async fn reset_counts(nodes: &Nodes) {
    for node in nodes.iter() {
        node.inspect().command::<()>(&["CONFIG", "RESETSTAT"]).await;
    }
}

/// Returns the number of scripts for locks that the busiest node received. Ignores `EVAL`: processes compare their settings by it, at
/// any time.
pub(crate) async fn most_scripts(nodes: &Nodes) -> u64 {
    let mut most = 0;
    for node in nodes.iter() {
        most = most.max(node.inspect().calls("evalsha").await);
    }
    most
}

/// Checks that `manager` has left nothing now, and waits until the other managers have left nothing. A release is confirmed by a
/// majority, and may still be on its way to the other nodes.
pub(crate) async fn assert_all_gone(manager: &LockManager, nodes: &Nodes) {
    nodes.assert_empty(PATIENCE).await;
    assert_nothing_left(manager, nodes).await;
}
