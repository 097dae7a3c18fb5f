//! Leases of different lengths in the local queue of one manager, and leases that expire there.

use crate::support::{assert_nothing_left, barrier, builder, connected, manager, owner_at};
use crate::waiters::{line_up, obtained, patient, waiting};
use redlock_runtime::{LockManager, LockRequest};
use redlock_tests::Nodes;
use std::time::Duration;
use tokio::task::yield_now;

const KEY: &str = "order:7";

#[tokio::test]
async fn local_hand_off_respects_the_requested_ttl() {
    let nodes = Nodes::start(3).await;
    let manager = manager(&nodes).await;
    let ttls = [30, 6, 60, 60, 30].map(Duration::from_secs);
    let request = |ttl| patient(KEY).ttl(ttl);
    let held = manager.acquire(request(ttls[0])).await.unwrap();
    let mut calls = Vec::new();
    for ttl in &ttls[1..] {
        calls.push(waiting(&manager, request(*ttl)));
        yield_now().await;
    }
    drop(held);
    for (call, ttl) in calls.into_iter().zip(&ttls[1..]) {
        let guard = obtained(call).await;
        assert_eq!(guard.ttl(), *ttl);
        assert!(guard.remaining() <= *ttl && guard.remaining() > ttl.mul_f64(0.8), "{guard:?}");
        let left = nodes[0].inspect().pttl(KEY).await;
        assert!(left <= i64::try_from(ttl.as_millis()).unwrap(), "{left} ms at the node, for {ttl:?}");
    }
    assert_nothing_left(&manager, &nodes).await;
}

/// Lease that expires during a test.
const SHORT: Duration = Duration::from_millis(200);

async fn brief_manager(nodes: &Nodes) -> LockManager {
    connected(builder(nodes.urls()).node_timeout(Duration::from_millis(100)), nodes).await
}

#[tokio::test]
async fn leaked_guard_blocks_its_process_only_for_its_ttl() {
    let nodes = Nodes::start(1).await;
    let manager = brief_manager(&nodes).await;
    std::mem::forget(manager.acquire(LockRequest::new(KEY).ttl(SHORT).without_renewal()).await.unwrap());
    for call in line_up(&manager, KEY, 3).await {
        drop(obtained(call).await);
    }
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn leaked_short_lease_after_a_long_one_blocks_only_for_its_ttl() {
    // The third call has seen only the long lease, and must notice the end of the short one.
    let nodes = Nodes::start(1).await;
    let manager = brief_manager(&nodes).await;
    let held = manager.acquire(KEY).await.unwrap();
    let leaked = waiting(&manager, patient(KEY).ttl(SHORT).without_renewal());
    yield_now().await;
    let [third] = line_up(&manager, KEY, 1).await.try_into().unwrap();
    drop(held);
    std::mem::forget(obtained(leaked).await);
    drop(obtained(third).await);
    assert_nothing_left(&manager, &nodes).await;
}

#[tokio::test]
async fn drop_of_an_expired_guard_does_not_release_its_successor() {
    let nodes = Nodes::start(1).await;
    let manager = brief_manager(&nodes).await;
    let late = manager.acquire(LockRequest::new(KEY).ttl(SHORT).without_renewal()).await.unwrap();
    let [call] = line_up(&manager, KEY, 1).await.try_into().unwrap();
    let guard = obtained(call).await;
    assert!(!late.is_held());
    drop(late);
    barrier(&nodes).await;
    assert_eq!(owner_at(&nodes[0], KEY).await.as_deref(), Some(guard.token().as_str()));
    assert!(manager.try_acquire(KEY).await.unwrap_err().is_contended(), "the seat is still taken");
    guard.release().await.unwrap();
    assert_nothing_left(&manager, &nodes).await;
}
