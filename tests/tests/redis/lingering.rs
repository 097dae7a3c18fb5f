//! Locks that a process keeps after a call: its next call reuses them without a command, and other processes get them on request.

use crate::support::{
    GENEROUS, SIZES, assert_nothing_left, barrier, builder, connected, manager_through, wait_until_all_vote,
};
use crate::waiters::{most_scripts, reset_counts};
use redlock_runtime::{LockManager, LockManagerBuilder, LockRequest};
use redlock_tests::{Nodes, PATIENCE, eventually};
use std::time::Duration;
use tokio::time::timeout;

const KEY: &str = "order:7";
const TTL: Duration = Duration::from_secs(60);
/// Longer than any wait here, so a waiter does not get the lock by the end of its lease.
const LONG: Duration = Duration::from_secs(40);

fn lingering(nodes: &Nodes, linger: Duration) -> LockManagerBuilder {
    builder(nodes.urls()).default_ttl(TTL).default_wait(PATIENCE).linger(linger)
}

/// Returns a manager that keeps `KEY` idle at every node.
async fn with_an_idle_lock(nodes: &Nodes, linger: Duration) -> LockManager {
    let manager = connected(lingering(nodes, linger), nodes).await;
    make_idle(&manager, nodes, &KEY.into()).await;
    manager
}

/// Makes the manager keep the lock of `request` idle at every node.
pub(crate) async fn make_idle(manager: &LockManager, nodes: &Nodes, request: &LockRequest) {
    // The manager keeps a lock after its first use, and after the channels for requests of others are open.
    eventually(PATIENCE, "the lock is kept", async || {
        drop(manager.acquire(request.clone()).await.map_err(|error| error.to_string())?);
        barrier(nodes).await;
        let standing = nodes.mentions("@").await.len();
        if manager.stats().linger.started > 0 && standing == nodes.len() { Ok(()) } else { Err(format!("{standing}")) }
    })
    .await;
}

#[tokio::test]
async fn lingering_lock_is_reused_without_a_command() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let manager = with_an_idle_lock(&nodes, LONG).await;
        reset_counts(&nodes).await;
        let before = manager.stats().linger.reused;
        for _ in 0..100 {
            let guard = manager.try_acquire(KEY).await.unwrap();
            assert!(guard.is_held());
        }
        assert_eq!(manager.stats().linger.reused, before + 100);
        barrier(&nodes).await;
        assert_eq!(most_scripts(&nodes).await + nodes[0].inspect().calls("set").await, 0, "{size} nodes");
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn waiting_call_of_another_process_reclaims_a_lingering_lock() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let ours = with_an_idle_lock(&nodes, LONG).await;
        // The manager that asks may linger itself or not.
        let theirs = builder(nodes.urls()).default_ttl(TTL).default_wait(PATIENCE).build().unwrap();
        let guard = theirs.acquire(KEY).await.unwrap();
        assert_eq!(ours.stats().linger.reclaimed, 1);
        drop(guard);
        ours.acquire(KEY).await.unwrap().release().await.unwrap();
        assert_nothing_left(&theirs, &nodes).await;
        assert_nothing_left(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn non_waiting_call_of_another_process_reclaims_only_a_lingering_lock() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let ours = with_an_idle_lock(&nodes, LONG).await;
        // The call gets an answer well before the node timeout: an idle lock is released, and the other manager reports a running body.
        let theirs = lingering(&nodes, LONG).node_timeout(TTL / 2).build().unwrap();
        let asks = async || timeout(PATIENCE, theirs.try_acquire(KEY)).await.expect("somebody has answered");
        asks().await.unwrap().release().await.unwrap();
        assert_eq!(ours.stats().linger.reclaimed, 1);
        let held = ours.acquire(KEY).await.unwrap();
        for _ in 0..3 {
            assert!(asks().await.unwrap_err().is_contended());
        }
        assert!(held.is_held());
        held.release().await.unwrap();
        asks().await.unwrap().release().await.unwrap();
        assert_nothing_left(&theirs, &nodes).await;
        assert_nothing_left(&ours, &nodes).await;
    }
}

#[tokio::test]
async fn non_lingering_request_reclaims_a_lingering_lock_without_waiting() {
    let nodes = Nodes::start(3).await;
    let ours = with_an_idle_lock(&nodes, LONG).await;
    let theirs = lingering(&nodes, LONG).node_timeout(TTL / 2).build().unwrap();
    let least = LockRequest::new(KEY).min_hold(Duration::from_millis(1));
    for request in [LockRequest::new(KEY).linger(Duration::ZERO), least] {
        // Uses the lock often enough that the manager keeps it, again and at once.
        for _ in 0..8 {
            drop(ours.acquire(KEY).await.unwrap());
        }
        let recalled = ours.stats().linger.reclaimed;
        let asked = timeout(PATIENCE, theirs.try_acquire(request)).await.expect("somebody has answered");
        asked.unwrap().release().await.unwrap();
        assert_eq!(ours.stats().linger.reclaimed, recalled + 1);
        eventually(PATIENCE, "the lock is kept again", async || {
            drop(ours.acquire(KEY).await.map_err(|error| error.to_string())?);
            let kept = ours.stats().linger;
            if kept.started > kept.reused + kept.reclaimed + kept.expired { Ok(()) } else { Err(format!("{kept:?}")) }
        })
        .await;
    }
    assert_nothing_left(&ours, &nodes).await;
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn failed_try_of_another_process_keeps_the_lock_lingering() {
    let nodes = Nodes::start(3).await;
    let ours = with_an_idle_lock(&nodes, LONG).await;
    let theirs = lingering(&nodes, LONG).build().unwrap();
    let held = ours.acquire(KEY).await.unwrap();
    let token = *held.token();
    assert!(theirs.try_acquire(KEY).await.unwrap_err().is_contended());
    drop(held);
    let next = ours.acquire(KEY).await.unwrap();
    assert_eq!(*next.token(), token, "it was kept, and taken over");
    drop(next);
    assert_nothing_left(&ours, &nodes).await;
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn polling_program_gets_the_lock_after_the_linger_time() {
    for size in SIZES {
        let nodes = Nodes::start(size).await;
        let manager = with_an_idle_lock(&nodes, Duration::from_millis(300)).await;
        // Long before the end of the lease.
        for node in nodes.iter() {
            eventually(PATIENCE, "the key is free", async || {
                let set: Option<String> = node.inspect().command(&["SET", KEY, "somebody else", "NX"]).await;
                set.ok_or("taken")
            })
            .await;
            node.inspect().command::<()>(&["DEL", KEY]).await;
        }
        assert_eq!(manager.stats().linger.reclaimed, 0);
        assert_nothing_left(&manager, &nodes).await;
    }
}

#[tokio::test]
async fn lingering_lock_of_a_dead_process_is_free_after_its_lease() {
    let nodes = Nodes::start(3).await;
    let proxies = nodes.proxied().await;
    // Little more than the node timeout.
    let ttl = GENEROUS + GENEROUS / 5;
    let ours = manager_through(&proxies, &nodes).await;
    let request = LockRequest::new(KEY).ttl(ttl).linger(LONG);
    eventually(PATIENCE, "the lock is kept", async || {
        drop(ours.acquire(request.clone()).await.map_err(|error| error.to_string())?);
        if ours.stats().linger.started > 0 { Ok(()) } else { Err("not yet".to_owned()) }
    })
    .await;
    // From here on, no message of the manager arrives.
    drop(proxies);
    let theirs = builder(nodes.urls()).default_wait(PATIENCE).build().unwrap();
    theirs.acquire(KEY).await.unwrap().release().await.unwrap();
    assert_nothing_left(&theirs, &nodes).await;
}

#[tokio::test]
async fn dropping_the_last_manager_releases_lingering_locks_only() {
    let nodes = Nodes::start(3).await;
    let manager = with_an_idle_lock(&nodes, LONG).await;
    let held = manager.acquire("order:8").await.unwrap();
    drop(manager);
    nodes.assert_no_mention(PATIENCE, KEY).await;
    assert!(held.is_held());
    drop(held);
    nodes.assert_empty(PATIENCE).await;
}

#[tokio::test]
async fn fencing_tokens_increase_across_lingering_reuse_and_reclaim() {
    let nodes = Nodes::start(3).await;
    let managers = [lingering(&nodes, LONG).build().unwrap(), lingering(&nodes, LONG).build().unwrap()];
    for manager in &managers {
        wait_until_all_vote(manager, &nodes).await;
    }
    let mut tokens = Vec::new();
    for turn in 0..60 {
        let manager = &managers[usize::from(turn % 10 == 9)];
        tokens.push(manager.acquire(LockRequest::new(KEY).fencing()).await.unwrap().fencing_token());
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    assert!(managers[0].stats().linger.reused > 0, "{:?}", managers[0].stats().linger);
    for manager in &managers {
        assert!(manager.shutdown().await);
    }
}
