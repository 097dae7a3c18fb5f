//! Failed masters, and replicas that take over.

use super::load::Load;
use super::{assert_nothing_left, connected, keys, ready};
use crate::support::{builder, causes};
use redlock_runtime::{LockError, LockGuard, LockManager, NodeError};
use redlock_tests::{Cluster, Nodes, PATIENCE, eventually};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Number of bodies that run before and after.
const BODIES: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_continue_after_a_cluster_failover() {
    let cluster = Cluster::start(3, 1).await;
    let managers = [connected(&cluster).await, connected(&cluster).await];
    let keys = keys(&cluster, "order").await;
    let load = Load::start(&managers, &keys);
    load.witness.more(BODIES).await;
    cluster.member(0).kill();
    cluster.fail_over(0).await;
    for manager in &managers {
        eventually(PATIENCE, "it is ready again", async || manager.ready().await).await;
    }
    load.witness.more(BODIES).await;
    let witness = Arc::clone(&load.witness);
    let errors = load.end().await;
    println!("{} bodies, {} errors", witness.bodies.load(Ordering::SeqCst), errors.len());
    assert_eq!(witness.overlaps.load(Ordering::SeqCst), 0);
    let is_of_failover = |error: &LockError| matches!(error, LockError::NoQuorum { .. } | LockError::Lost { .. });
    assert!(errors.iter().all(is_of_failover), "{errors:?}");
    assert_nothing_left(&[&managers[0], &managers[1]], &cluster).await;
}

#[tokio::test]
async fn holder_keeps_its_lock_through_a_cluster_failover() {
    let cluster = Cluster::start(3, 1).await;
    let (manager, other) = (connected(&cluster).await, connected(&cluster).await);
    let key = cluster.key_on(0, "order").await;
    let held = manager.acquire(&key).await.unwrap();
    let replica = cluster.member(3).inspect();
    eventually(PATIENCE, "the replica knows", async || {
        let keys = replica.keys().await;
        if keys.is_empty() { Err(()) } else { Ok(()) }
    })
    .await;
    cluster.member(0).kill();
    cluster.fail_over(0).await;
    for manager in [&manager, &other] {
        eventually(PATIENCE, "it is ready again", async || manager.ready().await).await;
    }
    assert!(other.try_acquire(&key).await.unwrap_err().is_contended());
    held.release().await.unwrap();
    assert_nothing_left(&[&manager, &other], &cluster).await;
}

#[tokio::test]
async fn holder_loses_a_lock_that_was_not_replicated_before_a_failover() {
    let cluster = Cluster::start(3, 1).await;
    let manager = connected(&cluster).await;
    let key = cluster.key_on(0, "order").await;
    let body = async |_: &LockGuard| -> Result<(), LockError> {
        cluster.member(0).kill();
        let replica = cluster.fail_over(0).await;
        // As if the master had died before it replicated the key.
        cluster.member(replica).inspect().command::<()>(&["DEL", &key]).await;
        pending().await
    };
    let error = tokio::time::timeout(3 * PATIENCE, manager.with_lock(&key, body)).await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error:?}");
    assert_nothing_left(&[&manager], &cluster).await;
}

/// No connection is lost: the new master was a member before.
#[tokio::test]
async fn holder_loses_its_lock_when_its_slot_is_reassigned_without_the_key() {
    let cluster = Cluster::start(3, 0).await;
    // Not renewed before the end of the test.
    let manager = ready(builder([cluster.url()]).default_ttl(12 * PATIENCE)).await;
    let key = cluster.key_on(0, "order").await;
    let body = async |_: &LockGuard| -> Result<(), LockError> {
        cluster.member(0).kill();
        cluster.give(cluster.slot(&key).await, 1).await;
        pending().await
    };
    let error = tokio::time::timeout(3 * PATIENCE, manager.with_lock(&key, body)).await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error:?}");
    assert_nothing_left(&[&manager], &cluster).await;
}

#[tokio::test]
async fn frozen_cluster_master_does_not_block_locks_of_other_masters() {
    let cluster = Cluster::start(3, 0).await;
    let manager = connected(&cluster).await;
    let [frozen, key, _] = keys(&cluster, "order").await;
    let held = manager.acquire(&frozen).await.unwrap();
    cluster.member(0).freeze();
    // Its release stays unanswered for longer than a node may owe an answer.
    drop(held);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1500) {
        manager.try_acquire(&key).await.unwrap().release().await.unwrap();
    }
    eventually(PATIENCE, "it is asked nothing more", async || {
        let error = manager.try_acquire(&frozen).await.unwrap_err();
        if causes(&error).iter().any(|(_, error)| matches!(error, NodeError::Stalled(_))) { Ok(()) } else { Err(error) }
    })
    .await;
    manager.try_acquire(&key).await.unwrap().release().await.unwrap();
    cluster.member(0).thaw();
    assert_nothing_left(&[&manager], &cluster).await;
}

/// Returns a manager for which every node counts.
async fn with_all_votes(cluster: &Cluster, nodes: &Nodes) -> LockManager {
    let manager = builder(nodes.urls().into_iter().chain([cluster.url()])).build().unwrap();
    eventually(PATIENCE, "every node counts", async || {
        let report = manager.check().await;
        if report.nodes.iter().all(|node| node.error.is_none()) { Ok(()) } else { Err(report.to_string()) }
    })
    .await;
    manager
}

/// Checks that the vote of the cluster about `key` abstains although it is needed.
async fn assert_abstention(manager: &LockManager, key: &str) {
    eventually(PATIENCE, "the slot is found, and abstains", async || {
        let error = manager.try_acquire(key).await.unwrap_err();
        let abstains = |(_, error): &(&str, &NodeError)| matches!(error, NodeError::RecentlyRestarted(_));
        if causes(&error).iter().any(abstains) { Ok(()) } else { Err(error) }
    })
    .await;
}

#[tokio::test]
async fn slot_moved_after_a_failover_abstains_in_a_quorum() {
    let (cluster, nodes) = (Cluster::start(3, 1).await, Nodes::start(2).await);
    let manager = with_all_votes(&cluster, &nodes).await;
    let [lost, kept, _] = keys(&cluster, "order").await;
    cluster.member(0).kill();
    cluster.fail_over(0).await;
    // Moves the slot as a rebalancer does, to a member that has always counted. The first command is sent there before the map is known.
    cluster.move_slot(cluster.slot(&lost).await, 1).await;
    nodes[0].kill();
    for _ in 0..3 {
        assert_abstention(&manager, &lost).await;
    }
    manager.try_acquire(&kept).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn reassigned_slots_of_a_lost_master_abstain_in_a_quorum() {
    let (cluster, nodes) = (Cluster::start(3, 0).await, Nodes::start(2).await);
    let manager = with_all_votes(&cluster, &nodes).await;
    let [lost, kept, _] = keys(&cluster, "order").await;
    cluster.member(0).kill();
    cluster.give(cluster.slot(&lost).await, 1).await;
    nodes[0].kill();
    assert_abstention(&manager, &lost).await;
    manager.try_acquire(&kept).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn promoted_cluster_replica_abstains_in_a_quorum() {
    let (cluster, nodes) = (Cluster::start(3, 1).await, Nodes::start(2).await);
    let manager = with_all_votes(&cluster, &nodes).await;
    let [lost, kept, _] = keys(&cluster, "order").await;
    cluster.member(0).kill();
    cluster.fail_over(0).await;
    eventually(PATIENCE, "the replica is found, and abstains", async || {
        let report = manager.check().await;
        let error = report.nodes[2].error.clone();
        if matches!(error, Some(NodeError::RecentlyRestarted(_))) { Ok(()) } else { Err(report.to_string()) }
    })
    .await;
    manager.try_acquire(&lost).await.unwrap().release().await.unwrap();
    nodes[0].kill();
    manager.try_acquire(&kept).await.unwrap().release().await.unwrap();
    let error = manager.try_acquire(&lost).await.unwrap_err();
    assert!(causes(&error).iter().any(|(_, error)| matches!(error, NodeError::RecentlyRestarted(_))), "{error}");
}
