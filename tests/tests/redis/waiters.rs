//! Calls that wait, each in a task of its own, and what it costs to serve them.

use crate::support::{assert_nothing_left, manager, wait_until_queued};
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use redlock_tests::{Inspector, Nodes, PATIENCE, eventually_eq};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

pub(crate) type Waiting = JoinHandle<Result<LockGuard, LockError>>;

/// A call for `request`, which waits for as long as the harness has patience unless it says otherwise.
pub(crate) fn waiting(manager: &LockManager, request: impl Into<LockRequest>) -> Waiting {
    let (manager, request) = (manager.clone(), request.into());
    tokio::spawn(async move { manager.acquire(request).await })
}

pub(crate) fn patient(key: &str) -> LockRequest {
    LockRequest::new(key).wait(PATIENCE)
}

/// Managers that are connected to every node.
pub(crate) async fn managers(nodes: &Nodes, many: usize) -> Vec<LockManager> {
    let mut managers = Vec::with_capacity(many);
    for _ in 0..many {
        managers.push(manager(nodes).await);
    }
    managers
}

/// One call of each manager, in the queue on every node in this order, behind whoever holds the lock.
pub(crate) async fn queue_up(managers: &[LockManager], nodes: &Nodes, key: &str) -> Vec<Waiting> {
    let mut calls = Vec::with_capacity(managers.len());
    for manager in managers {
        calls.push(waiting(manager, patient(key)));
        wait_until_queued(nodes, key, calls.len()).await;
    }
    calls
}

/// So many calls in the line of `manager`, one behind the other.
pub(crate) async fn line_up(manager: &LockManager, key: &str, many: usize) -> Vec<Waiting> {
    let mut calls = Vec::with_capacity(many);
    for _ in 0..many {
        calls.push(waiting(manager, patient(key)));
        // On the one thread of the test, the call is in line when it is our turn again.
        yield_now().await;
    }
    calls
}

/// The lock that the call waits for.
pub(crate) async fn obtained(call: Waiting) -> LockGuard {
    let outcome = timeout(PATIENCE, call).await.expect("the lock is passed on");
    outcome.unwrap().unwrap_or_else(|error| panic!("{error}"))
}

/// Drops the call where it stands.
pub(crate) async fn cancelled(call: Waiting) {
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
}

/// The name of the queue of `key`, as the server would list it.
pub(crate) fn queue_of(key: &str) -> String {
    format!("{{{key}}}:q")
}

/// The tokens in the queue, the first one first.
pub(crate) async fn queue(inspect: &Inspector, key: &str) -> Vec<String> {
    let mut members: Vec<String> = inspect.command(&["ZRANGE", &queue_of(key), "0", "-1"]).await;
    // Beside a token may stand when it was heard of.
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

/// Counts anew from here on.
pub(crate) async fn reset_counts(nodes: &Nodes) {
    for node in nodes.iter() {
        node.inspect().command::<()>(&["CONFIG", "RESETSTAT"]).await;
    }
}

/// Number of scripts that the busiest node was asked to run for locks. `EVAL` is not counted: processes compare their settings by it, at
/// any time.
pub(crate) async fn most_scripts(nodes: &Nodes) -> u64 {
    let mut most = 0;
    for node in nodes.iter() {
        most = most.max(node.inspect().calls("evalsha").await);
    }
    most
}

/// Nothing is left, now of `manager` and soon of the others: a release is confirmed by a majority, and on its way to the
/// other nodes.
pub(crate) async fn assert_all_gone(manager: &LockManager, nodes: &Nodes) {
    nodes.assert_empty(PATIENCE).await;
    assert_nothing_left(manager, nodes).await;
}
