//! Waiting calls for permits: their blockers, the number of their commands, and their time limits.

use super::{KEY, brief, permit};
use crate::waiters::{assert_all_gone, managers, most_scripts, obtained, patient, reset_counts, waiting};
use redlock_runtime::__private::hold;
use redlock_runtime::{LockError, LockGuard, LockManager, LockRequest, Mode, Wait, distributed_lock};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually, eventually_eq};
use std::time::Duration;
use tokio::time::timeout;

/// Limit on commands in a second or two. Occasional polling stays far below it, and constant polling far above.
const MANY: u64 = 100;

/// Waits until `many` entries are at the first node: permits, and the provisional permit of the call in the admission lock.
async fn wait_until_there(nodes: &Nodes, many: usize) {
    let there = || async { nodes[0].inspect().share_count(KEY).await };
    eventually_eq(PATIENCE, "as many are there", many, there).await;
}

pub(super) async fn wait_until_in_admission(nodes: &Nodes) {
    let there = || async { nodes[0].inspect().command::<usize>(&["EXISTS", "{export}:t"]).await };
    eventually_eq(PATIENCE, "one is in the admission lock", 1, there).await;
}

/// Returns the outcome of a call in the body of `outer`.
async fn nested(manager: &LockManager, outer: &LockGuard, request: LockRequest) -> Result<LockGuard, LockError> {
    let asks = hold(outer, manager.acquire(request.wait(Wait::Forever)));
    timeout(PATIENCE, asks).await.expect("it waits for itself").unwrap()
}

#[tokio::test]
async fn nested_permit_call_behind_a_waiter_for_its_callers_permit_fails() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        for of in [&ours, &theirs] {
            let outer = ours.acquire(permit(2)).await.unwrap();
            let first = waiting(of, permit(1));
            wait_until_there(&nodes, 2).await;
            let error = nested(&ours, &outer, permit(2)).await.unwrap_err();
            assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error}");
            drop(outer);
            drop(obtained(first).await);
        }
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn nested_permit_call_fails_behind_a_waiter_blocked_by_a_queued_writer() {
    let nodes = Nodes::start(1).await;
    let [ours, theirs, writer] = managers(&nodes, 3).await.try_into().unwrap();
    let outer = ours.acquire(permit(2)).await.unwrap();
    let alone = waiting(&writer, patient(KEY));
    crate::support::wait_until_queued(&nodes, KEY, 1).await;
    let first = waiting(&theirs, permit(2));
    wait_until_in_admission(&nodes).await;
    let error = nested(&ours, &outer, permit(2)).await.unwrap_err();
    assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error}");
    drop(outer);
    drop(obtained(alone).await);
    drop(obtained(first).await);
    for manager in [ours, theirs, writer] {
        assert_all_gone(&manager, &nodes).await;
    }
}

#[distributed_lock(key = "export", mode = shared)]
async fn read(ours: &LockManager, permits: u32) -> Result<(), LockError> {
    drop(ours.acquire(permit(permits)).await?);
    Ok(())
}

#[distributed_lock(key = "export", mode = shared)]
async fn read_twice(ours: &LockManager, permits: u32) -> Result<(), LockError> {
    read(ours, permits).await
}

#[tokio::test]
async fn callers_with_one_shared_vote_count_as_one_permit() {
    // A single node has no late answers, for which the second call would need a separate vote.
    let nodes = Nodes::start(1).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    // A call that has waited hears of other calls, and joins them.
    let alone = theirs.acquire(patient(KEY)).await.unwrap();
    let first = waiting(&ours, patient(KEY));
    crate::support::wait_until_queued(&nodes, KEY, 1).await;
    drop(alone);
    drop(obtained(first).await);
    timeout(PATIENCE, ours.scope(read_twice(&ours, 2))).await.expect("it waits for itself").unwrap();
    let error = timeout(PATIENCE, ours.scope(read_twice(&ours, 1))).await.expect("it waits for itself").unwrap_err();
    assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error}");
    assert_all_gone(&ours, &nodes).await;
    assert_all_gone(&theirs, &nodes).await;
}

#[tokio::test]
async fn shared_lock_below_a_path_does_not_count_as_a_permit() {
    let nodes = Nodes::start(1).await;
    let [ours] = managers(&nodes, 1).await.try_into().unwrap();
    let below = ours.acquire(LockRequest::path("/acme/docs").mode(Mode::Shared)).await.unwrap();
    let inner = nested(&ours, &below, LockRequest::new("/{acme}").permits(1)).await.unwrap();
    drop((inner, below));
    assert_all_gone(&ours, &nodes).await;
}

#[tokio::test]
async fn yielding_permit_call_does_not_wake_itself() {
    let nodes = Nodes::start(3).await;
    let [ours] = managers(&nodes, 1).await.try_into().unwrap();
    for node in &nodes[..2] {
        node.inspect().command::<()>(&["SET", KEY, "another", "NX", "PX", "2000"]).await;
    }
    reset_counts(&nodes).await;
    // The call enters at the third node, and releases that vote.
    let held = obtained(waiting(&ours, permit(2))).await;
    let scripts = most_scripts(&nodes).await;
    assert!(scripts < MANY, "{scripts} scripts");
    held.release().await.unwrap();
    assert_all_gone(&ours, &nodes).await;
}

#[tokio::test]
async fn permit_call_reclaims_a_lingering_lock() {
    for size in [1, 3] {
        let nodes = Nodes::start(size).await;
        let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
        for of in [&ours, &theirs] {
            // The lock lingers for longer than the test, unless it is requested.
            let alone = patient(KEY).linger(2 * PATIENCE).ttl(2 * PATIENCE);
            // A lock may linger once the process can hear others.
            eventually_eq(PATIENCE, "it lingers", 1, async || {
                drop(of.acquire(alone.clone()).await.unwrap());
                of.stats().linger.started.min(1)
            })
            .await;
            drop(obtained(waiting(&ours, permit(2))).await);
        }
        assert_all_gone(&ours, &nodes).await;
        assert_all_gone(&theirs, &nodes).await;
    }
}

#[tokio::test]
async fn permit_wait_ends_in_time_with_a_dead_majority() {
    let nodes = Nodes::start(3).await;
    let ours = brief(&nodes).await;
    let held = ours.acquire(permit(1)).await.unwrap();
    let call = waiting(&ours, permit(1).wait(Duration::from_millis(900)));
    wait_until_there(&nodes, 2).await;
    nodes[1..].iter().for_each(RedisServer::kill);
    reset_counts_of(&nodes[0]).await;
    let error = timeout(PATIENCE, call).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, LockError::NoQuorum { .. }), "{error}");
    let scripts = nodes[0].inspect().calls("evalsha").await;
    assert!(scripts < MANY, "{scripts} scripts");
    drop(held);
}

async fn reset_counts_of(node: &RedisServer) {
    node.inspect().command::<()>(&["CONFIG", "RESETSTAT"]).await;
}

#[tokio::test]
async fn orphaned_permit_is_reclaimed_by_non_waiting_calls() {
    let nodes = Nodes::start(1).await;
    let [ours, theirs] = managers(&nodes, 2).await.try_into().unwrap();
    let held = ours.acquire(permit(1)).await.unwrap();
    let (token, inspector) = (held.token().to_string(), nodes[0].inspect());
    held.release().await.unwrap();
    nodes.assert_empty(PATIENCE).await;
    // Simulates an entry that a cut connection delivers late.
    let [seconds, _]: [u64; 2] = inspector.command(&["TIME"]).await;
    inspector.command::<()>(&["ZADD", KEY, &((1 << 42) + (seconds + 60) * 1000).to_string(), &token]).await;
    inspector.command::<()>(&["PEXPIRE", KEY, "60000"]).await;
    eventually(PATIENCE, "its manager gives it back", async || {
        let tried = theirs.try_acquire(permit(1).wait(Wait::None)).await.map_err(|error| error.to_string())?;
        tried.release().await.map_err(|error| error.to_string())
    })
    .await;
}
